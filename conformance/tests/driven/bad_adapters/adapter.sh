# A member of a group of one, in POSIX sh, which behaves correctly except for the fault that its
# argument names. Its log begins with its process id, so that tests can check whether it is gone.

log() { echo "$1" >&2; }
say() { printf '%s\n' "$1"; }
ready() { read -r init; say '{"type":"init_ok","name":"bad","version":"1","features":['"$1"']}'; }
deliver() { say '{"type":"deliver","message":"'"$1"'","sender":"n0","group":"g0"}'; }

# Answers and delivers requested messages, and ends on request.
serve() {
    while read -r line; do
        case $line in
        *multicast*)
            message=${line#*'"message":"'}
            message=${message%%'"'*}
            say '{"type":"ok","message":"'"$message"'"}'
            deliver "$message"
            ;;
        *pause*)
            say '{"type":"error","code":"unsupported","definite":true,"text":"no hurry, no pause"}'
            ;;
        *stop*) halt ;;
        esac
    done
}
halt() {
    say '{"type":"halt","reason":"done"}'
    exit 0
}

log $$
case $1 in
good) ready && serve ;;
helper)
    # In a separate session, and therefore not in the member's process group.
    setsid sleep 600 </dev/null >/dev/null 2>&1 &
    log $!
    ready && serve
    ;;
garbage) read -r init && say 'hello, world' && exec sleep 600 ;;
half-a-line) read -r init && printf '{"type":"init_ok","na' ;;
nothing) exec sleep 600 ;;
endless-line) exec tr '\0' x </dev/zero ;;
endless-lines) exec yes '{"type":"deliver","message":"never sent","sender":"n0","group":"g0"}' ;;
endless-log) yes 'so much to say' >&2 & ready && serve ;;
exit-at-once) log 'no licence found' && exit 3 ;;
exit-later) ready && read -r line && exit 0 ;;
closed) ready && exec >&- && exec sleep 600 ;;
deaf) say '{"type":"init_ok","name":"bad","version":"1","features":[]}' && exec sleep 600 ;;
hang-at-stop) halt() { exec sleep 600; } && ready && serve ;;
lingering) halt() { say '{"type":"halt","reason":"done"}' && exec sleep 600; } && ready && serve ;;
unknown-message) ready && deliver 'n9/1/0' && serve ;;
unknown-group) ready && say '{"type":"view","group":"g7","view":1,"members":["n0"]}' && serve ;;
null) ready && say '{"type":"deliver","message":null,"sender":"n0","group":"g0","bytes":0}' &&
    serve ;;
wrong-type) ready && say '{"type":"deliver","message":7,"sender":"n0","group":"g0"}' && serve ;;
unknown-type) ready && say '{"type":"applause"}' && serve ;;
unasked) ready && say '{"type":"ok","message":"n0/1/999"}' && serve ;;
not-utf8) ready && printf '{"type":"\377"}\n' && serve ;;
gives-up) ready && read -r line && say '{"type":"halt","reason":"halted","text":"out of coffee"}' ;;
gives-up-in-view)
    ready '"views"' && say '{"type":"view","group":"g0","view":1,"members":["n0"]}' &&
        read -r line && say '{"type":"halt","reason":"halted","text":"out of coffee"}'
    ;;
cannot-start) read -r init &&
    say '{"type":"error","code":"unsupported","definite":true,"text":"not today"}' ;;
last-words)
    read -r init
    head -c 60000 /dev/zero | tr '\0' x >&2
    say '{"type":"error","code":"unsupported","definite":true,"text":"not today"}'
    ;;
claims-views) ready '"views"' && serve ;;
claims-durable) ready '"durable"' && serve ;;
claims-nonsense) ready '"durabel"' && serve ;;
no-answer)
    ready
    while read -r line; do
        case $line in
        *multicast*)
            message=${line#*'"message":"'}
            deliver "${message%%'"'*}"
            ;;
        *stop*) halt ;;
        esac
    done
    ;;
no-pause-null)
    ready '"pause"' &&
        say '{"type":"deliver","message":null,"sender":"n0","group":"g0","bytes":0}' && serve
    ;;
no-pause-undelivered) deliver() { :; } && ready '"pause"' && serve ;;
child-holds-on) sleep 60 & ready && serve ;;
*) log "no such way: $1" && exit 2 ;;
esac
