#!/usr/bin/env bash
# A conference on this machine: the server, two publishers (alice and bob) and a watcher (carol) whose live statistics
# are shown. Without --source alice is a synthetic person, and bob the seated person of the test data in
# VOLSFU_TESTDATA, or another synthetic person. The demo ends on Ctrl-C or after --seconds. The exit status is 0 if carol
# decoded frames and no process failed.
#
#   scripts/demo.sh [--seconds N] [--source SOURCE] [--fps N] [--tiles N] [--points N] [--qualities LIST]
#                   [--port N] [--admin-port N] [--media-port N] [--logs DIR]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds='' source='' fps=30 tiles=4 points=40000 qualities='' port=8080 admin_port=9090 media_port=7882 logs=''

say() { printf 'demo: %s\n' "$*" >&2; }
fail() {
	say "$*"
	exit 1
}

# number NAME VALUE LEAST MOST
number() {
	if ! [[ $2 =~ ^[0-9]{1,7}$ ]] || [ "$2" -lt "$3" ] || [ "$2" -gt "$4" ]; then
		fail "--$1: expected a number from $3 to $4, got '$2'"
	fi
}

while [ $# -gt 0 ]; do
	[ $# -ge 2 ] || fail "$1 needs a value"
	case $1 in
	--seconds) number seconds "$2" 1 86400 && seconds=$2 ;;
	--source) source=$2 ;;
	--fps) number fps "$2" 1 240 && fps=$2 ;;
	--tiles) number tiles "$2" 1 15 && tiles=$2 ;;
	--points) number points "$2" 1 9999999 && points=$2 ;;
	--qualities) qualities=$2 ;;
	--port) number port "$2" 1 65535 && port=$2 ;;
	--admin-port) number admin-port "$2" 1 65535 && admin_port=$2 ;;
	--media-port) number media-port "$2" 1 65535 && media_port=$2 ;;
	--logs) logs=$2 ;;
	*) fail "unknown option $1" ;;
	esac
	shift 2
done

for program in volsfu volpeer; do
	[ -x "bin/$program" ] || fail "bin/$program is missing; make demo builds it"
done

# listening PORT: succeeds if a server accepts TCP connections at the port. It uses the shell's sockets, since a new
# Debian has no curl.
listening() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# bound PORT: succeeds if a UDP socket of any address family is bound to the port.
bound() { grep -qi ":$(printf '%04X' "$1") " /proc/net/udp /proc/net/udp6 2>/dev/null; }

! listening "$port" || fail "port $port (signalling) is in use; choose another: make demo PORT=8081"
! listening "$admin_port" ||
	fail "port $admin_port (metrics and health) is in use; choose another: make demo ADMIN_PORT=9091"
if listening "$media_port" || bound "$media_port"; then
	fail "port $media_port (media) is in use; choose another: make demo MEDIA_PORT=7883"
fi

kept=$logs
[ -n "$logs" ] || logs=$(mktemp -d)
mkdir -p "$logs"
summary=$logs/watch.json

declare -A pids=()

# start NAME COMMAND…: runs the command in the background as the leader of a separate process group (set -m), so that
# Ctrl-C reaches only this script, which ends the children in order.
start() {
	local name=$1
	shift
	set -m
	"$@" </dev/null &
	set +m
	pids[$name]=$!
}

alive() { [ -n "${pids[$1]:-}" ] && kill -0 "${pids[$1]}" 2>/dev/null; }

# stop NAME SIGNAL: sends the signal, waits up to ten seconds, then kills the process.
stop() {
	alive "$1" || return 0
	kill -s "$2" -- "-${pids[$1]}" 2>/dev/null || true
	for _ in {1..100}; do
		alive "$1" || return 0
		sleep 0.1
	done
	say "$1 does not end, killing it"
	kill -s KILL -- "-${pids[$1]}" 2>/dev/null || true
}

cleanup() {
	trap '' INT TERM HUP
	stop carol INT
	stop alice TERM
	stop bob TERM
	stop server TERM
	[ -n "$kept" ] || rm -rf "$logs"
}
trap cleanup EXIT

stopping=''
trap 'stopping=yes' INT TERM HUP

# failed NAME MESSAGE: prints the end of the log and ends the demo.
failed() {
	[ ! -s "$logs/$1.log" ] || tail -n 20 "$logs/$1.log" | sed "s/^/  $1: /" >&2
	fail "$2"
}

# ready: succeeds if the admin listener reports that the server is ready.
ready() {
	(
		exec 3<>"/dev/tcp/127.0.0.1/$admin_port" || exit 1
		printf 'GET /readyz HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n' >&3
		read -r -t 2 _ status _ <&3 && [ "$status" = 200 ]
	) 2>/dev/null
}

start server bin/volsfu serve --dev --listen "127.0.0.1:$port" --admin-listen "127.0.0.1:$admin_port" \
	--media-port "$media_port" &>"$logs/server.log"
for _ in {1..150}; do
	[ -z "$stopping" ] || exit 130
	alive server || failed server "the server did not start"
	! ready || break
	sleep 0.1
done
ready || failed server "the server was not ready within 15 seconds"

server_url=ws://127.0.0.1:$port
publish=(--server "$server_url" --room demo --tiles "$tiles" --points "$points")
[ -z "$qualities" ] || publish+=(--qualities "$qualities")
alice=(--source "${source:-synthetic}" --fps "$fps")
bob=("${alice[@]}")
seated=${VOLSFU_TESTDATA:-}/seated-human/rgbd
[ -n "$source" ] || [ ! -d "$seated" ] || bob=(--source "rgbd:$seated") # at its own rate
start alice bin/volpeer publish "${publish[@]}" "${alice[@]}" --identity alice &>"$logs/alice.log"
start bob bin/volpeer publish "${publish[@]}" "${bob[@]}" --identity bob &>"$logs/bob.log"

say "viewer: http://127.0.0.1:$port/   metrics: http://127.0.0.1:$admin_port/metrics"
if [ -n "$seconds" ]; then
	say "alice and bob publish, carol watches for $seconds seconds"
else
	say "alice and bob publish, carol watches; Ctrl-C ends it"
fi

watch=(--server "$server_url" --room demo --identity carol --json)
[ -z "$seconds" ] || watch+=(--seconds "$seconds")
start carol bin/volpeer watch "${watch[@]}" >"$summary"

# Waits for the first process to end. This has to be carol, unless the user stops the demo.
status=0 ended=''
wait -n -p ended "${pids[@]}" || status=$?
if [ -n "$stopping" ]; then
	stop carol INT
	status=0
	wait "${pids[carol]}" || status=$?
	say "stopped"
elif [ "$ended" != "${pids[carol]}" ]; then
	for name in server alice bob; do
		[ "$ended" != "${pids[$name]}" ] || failed "$name" "$name ended before carol, with status $status"
	done
fi

# value KEY TEXT: prints the first number with that key in a JSON text.
value() {
	if [[ $2 =~ \"$1\":[[:space:]]*(-?[0-9]+(\.[0-9])?) ]]; then
		printf '%s' "${BASH_REMATCH[1]}"
	else
		printf -- '-'
	fi
}

json=$(tr -d '\n' <"$summary")
if [ -n "$json" ]; then
	whole=${json%%\"publications\"*} # the publications at the end have the same keys
	latency=${whole#*\"latency_ms\"}
	printf '\ncarol received %s of %s tile frames (%s undecodable, %s missing), %s a second of each tile\n' \
		"$(value frames_decoded "$whole")" "$(value frames_expected "$whole")" \
		"$(value frames_undecodable "$whole")" "$(value frames_missing "$whole")" "$(value fps "$whole")"
	printf 'latency from capture to decoded: median %s ms, 95 %% within %s ms\n' \
		"$(value p50 "$latency")" "$(value p95 "$latency")"
fi
[ -z "$kept" ] || say "logs and carol's summary are in $kept"
[ "$status" -eq 0 ] || fail "carol decoded nothing or failed (status $status)"
