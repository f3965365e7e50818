#!/bin/sh
# A producer for duestream that needs redis-cli and nothing else, written from docs/wire-protocol.md alone.
#
#   ./producer.sh put      emails order-1042 60000                                          a bare job in a minute
#   ./producer.sh schedule emails order-1042 60000 '{"to":"ada@example.org"}' welcome       a full one: data, name
#   PRIORITY=high ./producer.sh schedule imports '{acme}order-7' 0                              group acme, for a queue with limits
#   HEADERS='traceparent=00-0af7-b7ad-01' ./producer.sh schedule emails order-1043 60000      with headers, URL-encoded
#   ./producer.sh replace  emails order-1042 90000 '{"to":"bob@example.org"}' welcome
#   ./producer.sh cancel   emails order-1042                                                a full job
#   ./producer.sh unput    emails order-1042                                                a bare one
#
# REDIS_CLI says how to reach Redis ("redis-cli -h host -p port"), NAMESPACE which one, LUA where the two Lua files are.
# DUE (milliseconds since 1970) instead of a delay repeats a call whose outcome is unknown: it is the same call then.
set -eu

cli() {
  # -e: an error of Redis is an error of this script.
  ${REDIS_CLI:-redis-cli} -e "$@"
}

base36() {
  number=$1 text=
  while :; do
    digit=$((number % 36 + 1))
    text=$(printf 0123456789abcdefghijklmnopqrstuvwxyz | cut -c "$digit")$text
    number=$((number / 36))
    [ "$number" -gt 0 ] || break
  done
  echo "$text"
}

# CRC16-XMODEM of the routing text: the group in braces, else the whole id.
crc16() {
  crc=0
  for byte in $(printf %s "$1" | od -An -v -tu1); do
    crc=$((crc ^ byte << 8))
    for _ in 1 2 3 4 5 6 7 8; do
      crc=$((crc & 32768 ? (crc << 1 ^ 4129) & 65535 : crc << 1))
    done
  done
  echo "$crc"
}

# Sets due: a delay counts from the clock of Redis.
set_due() {
  case $1 in '' | *[!0-9]*) echo "the delay is '$1'; allowed: whole milliseconds" >&2; exit 64 ;; esac
  time=$(cli TIME)
  seconds=${time%%[!0-9]*} micros=${time##*[!0-9]}
  due=${DUE:-$((seconds * 1000 + micros / 1000 + $1))}
}

# Finds the queue, or declares it with one partition.
find_queue() {
  registry="$namespace:v1:{control}:queues"
  layout=$(cli HGET "$registry" "$queue")
  if [ -z "$layout" ]; then
    made=$(cli HSETNX "$registry" "$queue" '{"partitions":1,"generation":0}')
    [ "$made" = 0 ] || cli SPUBLISH "$namespace:v1:{control}:wake" "queue $queue" >/dev/null
    layout=$(cli HGET "$registry" "$queue")
  fi
  partitions=$(printf %s "$layout" | sed -n 's/.*"partitions" *: *\([0-9][0-9]*\).*/\1/p')
  generation=$(printf %s "$layout" | sed -n 's/.*"generation" *: *\([0-9][0-9]*\).*/\1/p')
  case $id in '{'?*'}'?*) routing=${id#?}; routing=${routing%%'}'*} ;; *) routing=$id ;; esac
  K="$namespace:v1:{$queue:$(($(crc16 "$routing") % partitions))}"
}

put() {
  set_due "$1"
  cli ZADD "$K:scheduled" "$due" "$id" >/dev/null
  # After the ZADD: asked before, the answer could be out of date.
  wake=$(cli HGET "$K:meta" wake)
  if [ -n "$wake" ] && [ "$due" -lt "$wake" ]; then cli SPUBLISH "$K:wake" "$due" >/dev/null; fi
  echo "put $due"
}

schedule() {
  set_due "$2"
  mode=$1 body=
  [ -z "${4:-}" ] || body="\"n\":\"$4\""
  [ -z "${3:-}" ] || body="$body${body:+,}\"d\":$3"
  letters=
  case ${PRIORITY:-normal} in high | low) letters=";t= $PRIORITY" ;; esac
  record="1$(base36 "$due")$letters|{$body}"
  if [ -n "${HEADERS:-}" ]; then
    # By its mark it is the same call as with other headers, or with none.
    mark=$(base36 "$due").$(cli EVAL "return redis.sha1hex(ARGV[1]):sub(1, 16)" 0 "$record")
    record="1$(base36 "$due")$letters;h=$HEADERS;m=$mark|{$body}"
  fi
  cli --eval "$lua/schedule.lua" "$K:scheduled" "$K:jobs" "$K:runs" "$K:done" "$K:meta" "$K:wake" "$K:stale" \
    "$K:tags" "$K:ready" "$K:line" , '' "$generation" "$mode" 315360000000 278528 "j:$id" "$record" "$due"
}

cancel() {
  cli --eval "$lua/cancel.lua" "$K:scheduled" "$K:jobs" "$K:runs" "$K:done" "$K:meta" "$K:stale" \
    "$K:tags" "$K:line" , '' "$generation" 600000 "$1"
}

[ $# -ge 3 ] || { sed -n '2,13s/^# \{0,1\}//p' "$0" >&2; exit 64; }
verb=$1 queue=$2 id=$3
namespace=${NAMESPACE:-duestream}
here=$(dirname "$0")
if [ -e "$here/schedule.lua" ]; then beside=$here; else beside=$here/../../lua; fi
lua=${LUA:-$beside}
shift 3
find_queue
case $verb in
  put) put "${1:-0}" ;;
  schedule) schedule keep "${1:-0}" "${2:-}" "${3:-}" ;;
  replace) schedule replace "${1:-0}" "${2:-}" "${3:-}" ;;
  cancel) cancel "j:$id" ;;
  unput) cancel "$id" ;;
  *) echo "unknown verb $verb" >&2; exit 64 ;;
esac
