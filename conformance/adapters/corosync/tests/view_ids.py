"""Requirements of view ids: one id for a view, at all members that install it; another for each
other view; rising."""
import os
import sys
import tempfile
import threading
import unittest

sys.path[0] = os.path.dirname(sys.path[0])
from views import JOIN, LEAVE, NODE_DOWN, NODE_UP, PROCESS_DOWN, Change, Numbering, Registry, Ring

RING = Ring(8, 1)


def at(nodeid):
    return nodeid, nodeid + 100


def change(members, left=(), joined=()):
    def listed(changed):
        return [(at(nodeid), reason) for nodeid, reason in changed]
    return Change([at(nodeid) for nodeid in members], listed(left), listed(joined))


class Ids(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.shared = folder.name

    def numbering(self, nodeid, patience_s=5):
        return Numbering(at(nodeid), Registry(self.shared, "g0", patience_s))

    def joined(self, ring, nodeid, members, patience_s=5):
        """A member that joins, and is told so and the ring; and the id of its view."""
        member = self.numbering(nodeid, patience_s)
        self.assertEqual(member.change(change(members, joined=[(nodeid, JOIN)])), [])
        [(number, _)] = member.formed(ring)
        return member, number

    def id_of(self, member, told):
        [(number, _)] = member.change(told)
        return number

    def test_joiner_learns_its_place_and_counts_on(self):
        first, number = self.joined(RING, 1, [1])
        self.assertEqual(number, 800_101_000)
        found = []
        waiting = threading.Thread(target=lambda: found.append(self.joined(RING, 2, [1, 2])))
        waiting.start()
        told = self.id_of(first, change([1, 2], joined=[(2, JOIN)]))
        waiting.join()
        second, learned = found[0]
        self.assertEqual((told, learned), (800_101_001, 800_101_001))
        leaves = change([1, 2], left=[(3, PROCESS_DOWN)])
        self.assertEqual(second.change(leaves), first.change(leaves))

    def test_same_members_again_are_another_view(self):
        first, alone = self.joined(RING, 1, [1])
        both = self.id_of(first, change([1, 2], joined=[(2, JOIN)]))
        again = self.id_of(first, change([1], left=[(2, LEAVE)]))
        self.assertTrue(alone < both < again)

    def test_joiner_comes_after_members_that_are_gone(self):
        first, _ = self.joined(RING, 1, [1])
        before = self.id_of(first, change([1, 2], joined=[(2, JOIN)]))
        _, alone = self.joined(RING, 4, [4])
        self.assertGreater(alone, before)
        _, late = self.joined(RING, 5, [3, 5], patience_s=0)
        self.assertGreater(late, alone)

    def test_first_claim_of_a_place_stands(self):
        joins = change([1, 2], joined=[(2, JOIN)])
        registry = Registry(self.shared, "g0", 0)
        self.assertEqual([registry.agree(RING, joins, place) for place in (1004, 1007)], [1004] * 2)

    def test_changes_of_a_ring_wait_for_its_id(self):
        ring = Ring(12, 1)
        one, before = self.joined(RING, 1, [1])
        self.assertEqual(one.change(change([1], left=[(2, NODE_DOWN)])), [])
        self.assertEqual(one.change(change([1, 3], joined=[(3, NODE_UP)])), [])
        self.assertTrue(one.held)
        three, _ = self.joined(Ring(8, 3), 3, [3])
        self.assertEqual(three.change(change([3], left=[(4, NODE_DOWN)])), [])
        self.assertEqual(three.change(change([1, 3], joined=[(1, NODE_UP)])), [])
        of_one, of_three = one.formed(ring), three.formed(ring)
        self.assertTrue(before < of_one[0][0] < of_one[1][0])
        self.assertNotEqual(of_one[0][0], of_three[0][0])
        self.assertEqual(of_one[1], of_three[1])
        leaves = change([1], left=[(3, LEAVE)])
        self.assertEqual(self.id_of(one, leaves), 1_200_101_000)
        self.assertEqual(self.id_of(three, leaves), 1_200_101_000)


if __name__ == "__main__":
    unittest.main()
