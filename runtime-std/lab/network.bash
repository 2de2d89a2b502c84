# Hosts as network namespaces that are connected by a bridge. Source this file; `name` distinguishes
# this run's namespaces.
#
# A host's link has an end at the host, eth0, and an end at the bridge, port<host>. The traffic that
# leaves each can be shaped.

hub() { ip netns exec "$name-hub" "$@"; }
at() { ip netns exec "$name-$1" "${@:2}"; }

# make_network SHAPE HOST...: calls SHAPE for each host once the host's link exists. Hosts are
# one-digit numbers.
make_network() {
    local shape=$1 host
    hub ip link add bridge0 type bridge
    hub ip link set bridge0 up
    for host in "${@:2}"; do
        ip netns add "$name-$host"
        ip link add eth0 netns "$name-$host" type veth peer name "port$host" netns "$name-hub"
        hub ip link set "port$host" master bridge0 up
        at "$host" ip address add "$(address_of "$host")/24" dev eth0
        at "$host" ip link set eth0 up
        at "$host" ip link set lo up
        "$shape" "$host"
    done
}

address_of() { echo "10.77.0.1$1"; }

# remove_network HOST...: removes the namespaces that exist.
remove_network() {
    local host
    for host in "$@"; do ip netns del "$name-$host"; done
    ip netns del "$name-hub"
}

# make_key FILE
make_key() {
    head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$1"
    chmod 600 "$1"
}

# list_nodes HOST...: prints the nodes in the form of a group file.
list_nodes() {
    local host
    for host in "$@"; do printf '[[nodes]]\nid = %s\naddress = "%s:7000"\n' "$host" "$(address_of "$host")"; done
}
