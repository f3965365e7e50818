#!lua flags=allow-oom
-- release: entries a consumer holds and has not started go back to scheduled at their due; no attempt is used.
-- KEYS  1 scheduled  2 jobs  3 runs  4 ready  5 done  6 meta  7 wake
-- ARGV  1 now  2 consumer  then per entry: entry, member, due
--       now ms, '' = server time; due ms
-- RETURN one text per entry: ok | dropped (over, in scheduled, or running) | started | lost (not owned by the caller)
-- A tombstone that waited for its entry enters done, so that it is swept. An earlier start that was lost with its worker
-- loses its entry here: its late end is then of no effect. A member that runs under another entry must not come back.
-- Records are never read: a value of more than 300 bytes is no tombstone.
local scheduled, jobs, runs, ready, done, meta, wake = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local now, consumer, replies, gone, soonest = tonumber(ARGV[1]), ARGV[2], {}, {}, math.huge
if not now then local t = redis.call('TIME') now = t[1] * 1000 + math.floor(t[2] / 1000) end
for at = 3, #ARGV, 3 do
  local entry, member, due = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2]) or 0
  local reply, run = 'ok', redis.call('HGET', runs, member) or ''
  local head, here, owner, rest = run:match('^(%d+ %d+ %d+ %d+ %d+) (%S+) (%S+) %S+ (.*)$')
  if #redis.call('XPENDING', ready, 'workers', entry, entry, 1, consumer) == 0 then reply = 'lost'
  elseif here == entry and owner == consumer then reply = 'started'
  else
    local length = redis.call('HSTRLEN', jobs, member)
    if length == 0 then reply = 'lost'
    elseif length <= 300 and redis.call('HGET', jobs, member):byte() == 46 then
      redis.call('ZADD', done, 'NX', now, member)
      reply = 'dropped'
    elseif here and here ~= entry and here ~= '-' and #redis.call('XPENDING', ready, 'workers', here, here, 1) > 0 then
      reply = 'dropped'
    elseif redis.call('ZADD', scheduled, 'NX', ('%.0f'):format(due), member) == 0 then reply = 'dropped'
    else soonest = math.min(soonest, due) end
    if length ~= 0 then gone[#gone + 1] = entry end
    if here == entry then redis.call('HSET', runs, member, ('%s - - %.0f %s'):format(head, due, rest)) end
  end
  replies[#replies + 1] = reply
end
if #gone > 0 then redis.call('XDEL', ready, unpack(gone)) redis.call('XACK', ready, 'workers', unpack(gone)) end
if soonest < (tonumber(redis.call('HGET', meta, 'wake') or -1)) then
  redis.call('HSET', meta, 'wake', ('%.0f'):format(soonest))
  redis.call('SPUBLISH', wake, ('%.0f'):format(soonest))
end
return replies
