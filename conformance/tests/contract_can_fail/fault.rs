//! The faults, and which clause must find each.

/// What is wrong with a fabric. One thing each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// Its limits shrink with every question.
    ChangesItsMind,
    /// It has neither order nor visible completions.
    PromisesNothing,
    /// It takes two writes a list.
    TakesFewWrites,
    /// It takes guards of 16 bytes.
    TakesShortGuards,
    /// It says that a write lands in address order, and it does not.
    ClaimsAddressOrder,
    /// It says that writes land in order, and they do not.
    ClaimsWriteOrder,
    /// It says that completed means visible, and it does not.
    ClaimsVisibleCompletions,
    /// A poll waits a while for something to report.
    BlocksInPoll,
    /// A post waits a while for room in the queue.
    WaitsForRoom,
    /// The last write of a list stays behind.
    DropsAWrite,
    /// Content goes in whole cache lines.
    WidensWrites,
    /// What is posted to one peer goes to all.
    SendsToAll,
    /// A write lands where it came from, wherever it was to go.
    IgnoresTargets,
    /// Every region is the row.
    IgnoresRegions,
    /// The longest list that it says it takes is too long for it.
    RefusesFullLists,
    /// What is too much of a list is left out.
    CutsLongLists,
    /// What is outside the row of a range is left out.
    ClampsRanges,
    /// What is too much of a guard is left out.
    CutsLargeGuards,
    /// A post to somebody who is not there is well received.
    TakesPostsToNobody,
    /// The good writes of a bad list go out.
    PostsTheGoodPart,
    /// A list that is refused completes.
    CompletesRefused,
    /// What still fits of a list goes out, and the list is refused.
    PostsWhatFits,
    /// A queue that was full once is full for ever.
    StaysFull,
    /// While one queue is full, all are.
    FullForAll,
    /// A list's writes go out backwards.
    SwapsWrites,
    /// Now and then a list goes out after the three that were posted after it.
    HoldsListsBack,
    /// A guard is read from memory whenever the hardware likes.
    ReadsGuardsLate,
    /// A list completes when it is posted.
    CompletesEarly,
    /// A completion is told twice.
    CompletesTwice,
    /// Every third completion is not told.
    LosesCompletions,
    /// Of completions that nobody polls, only some are kept.
    ForgetsCompletions,
    /// Everybody is ready always.
    ReadyTooEarly,
    /// Nothing that is posted too early is refused.
    PostsTooEarly,
    /// A second open is as good as the first.
    OpensTwice,
    /// Ready is told twice.
    TellsReadyTwice,
    /// Ready is never told.
    NeverTellsReady,
    /// A cut does nothing.
    IgnoresCuts,
    /// A cut refuses what goes out, and takes what comes in.
    CutsOneWay,
    /// A cut of one cuts all.
    CutsEveryone,
    /// A second cut takes the first one back.
    CutsInTurns,
    /// A view is said to have ended while its traffic goes on.
    EndsTooEarly,
    /// A view never ends.
    NeverEnds,
    /// A lost peer is told of twice.
    TellsLossTwice,
    /// A lost peer is never told of.
    NeverTellsLoss,
    /// With one peer, another is lost.
    LosesTheWrongPeer,
    /// Posts to a lost peer are well received.
    TakesPostsToTheLost,
    /// Now and then somebody is said to be lost who is not.
    InventsLosses,
    /// A ring does nothing.
    IgnoresWakes,
    /// A ring rings everybody.
    WakesEverybody,
    /// Arming succeeds whatever came.
    ArmsRegardless,
    /// Arming never succeeds.
    NeverArms,
    /// Arming says yes and does nothing.
    ForgetsToArm,
    /// Every seventh arming says yes and does nothing.
    ForgetsToArmAtTimes,
    /// A post rings whoever it goes to.
    RingsAlways,
    /// Disarming does nothing.
    NeverDisarms,
    /// Every seventh ring does nothing.
    LosesRings,
}

/// Each fault with the clause that is meant to find it. Others may find it too.
pub const TABLE: &[(Fault, &str)] = &[
    (Fault::ChangesItsMind, "capabilities-constant"),
    (Fault::PromisesNothing, "capabilities-sane"),
    (Fault::TakesFewWrites, "capabilities-sane"),
    (Fault::TakesShortGuards, "capabilities-sane"),
    (Fault::BlocksInPoll, "calls-return"),
    (Fault::WaitsForRoom, "calls-return"),
    (Fault::DropsAWrite, "write-lands-exactly"),
    (Fault::WidensWrites, "write-lands-exactly"),
    (Fault::SendsToAll, "write-lands-exactly"),
    (Fault::IgnoresTargets, "write-in-place"),
    (Fault::IgnoresRegions, "write-in-place"),
    (Fault::RefusesFullLists, "limits-are-taken"),
    (Fault::CutsLongLists, "list-too-long"),
    (Fault::ClampsRanges, "range-outside-row"),
    (Fault::CutsLargeGuards, "write-too-large"),
    (Fault::TakesPostsToNobody, "no-such-peer"),
    (Fault::PostsTheGoodPart, "all-or-nothing"),
    (Fault::CompletesRefused, "all-or-nothing"),
    (Fault::PostsWhatFits, "queue-full-refused-whole"),
    (Fault::StaysFull, "queue-full-passes"),
    (Fault::FullForAll, "queue-full-alone"),
    (Fault::SwapsWrites, "write-order-in-list"),
    (Fault::ClaimsWriteOrder, "write-order-in-list"),
    (Fault::HoldsListsBack, "write-order-between-lists"),
    (Fault::ClaimsWriteOrder, "write-order-between-lists"),
    (Fault::ClaimsAddressOrder, "address-order"),
    (Fault::SwapsWrites, "guard-after-content"),
    (Fault::ClaimsWriteOrder, "guard-after-content"),
    (Fault::ReadsGuardsLate, "guard-as-posted"),
    (Fault::CompletesEarly, "content-until-completed"),
    (Fault::CompletesTwice, "completed-once"),
    (Fault::LosesCompletions, "completed-once"),
    (Fault::ForgetsCompletions, "completions-kept"),
    (Fault::CompletesEarly, "completion-visible"),
    (Fault::ClaimsVisibleCompletions, "completion-visible"),
    (Fault::ReadyTooEarly, "not-before-open"),
    (Fault::PostsTooEarly, "not-before-open"),
    (Fault::OpensTwice, "open-once"),
    (Fault::TellsReadyTwice, "ready-told-once"),
    (Fault::NeverTellsReady, "ready-told-once"),
    (Fault::IgnoresCuts, "cut-stops"),
    (Fault::CutsOneWay, "cut-stops"),
    (Fault::CutsEveryone, "cut-stops"),
    (Fault::CutsInTurns, "cut-idempotent"),
    (Fault::EndsTooEarly, "retire-ends"),
    (Fault::NeverEnds, "retire-ends"),
    (Fault::TellsLossTwice, "loss-told-once"),
    (Fault::NeverTellsLoss, "loss-told-once"),
    (Fault::LosesTheWrongPeer, "loss-told-once"),
    (Fault::TakesPostsToTheLost, "lost-peer-refused"),
    (Fault::InventsLosses, "no-loss-without-cause"),
    (Fault::IgnoresWakes, "wake-rings-awake"),
    (Fault::WakesEverybody, "wake-rings-awake"),
    (Fault::ArmsRegardless, "ring-forbids-sleep"),
    (Fault::NeverArms, "ring-forbids-sleep"),
    (Fault::ForgetsToArm, "post-rings-armed"),
    (Fault::RingsAlways, "post-leaves-awake-alone"),
    (Fault::NeverDisarms, "post-leaves-awake-alone"),
    (Fault::ForgetsToArmAtTimes, "no-lost-wake-up"),
    (Fault::LosesRings, "no-lost-ring"),
];
