#!lua flags=allow-oom
-- release: entries a consumer holds and has not started go back to scheduled at their due; no attempt is used.
-- KEYS  1 scheduled  2 jobs  3 runs  4 ready  5 meta  6 wake
-- ARGV  1 now  2 consumer  then per entry: entry, member, due
--       now ms, '' = server time; due ms
-- RETURN one text per entry: ok | dropped (over, or already in scheduled) | started | lost (not owned by the caller)
local scheduled, jobs, runs, ready, meta, wake = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local consumer, replies, gone, soonest = ARGV[2], {}, {}, math.huge
for at = 3, #ARGV, 3 do
  local entry, member, due = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2]) or 0
  local reply = 'ok'
  if #redis.call('XPENDING', ready, 'workers', entry, entry, 1, consumer) == 0 then reply = 'lost'
  elseif (redis.call('HGET', runs, member) or ''):match('^%d+ %d+ %d+ %d+ %d+ (%S+ %S+)') == entry .. ' ' .. consumer then
    reply = 'started'
  else
    local record = redis.call('HGET', jobs, member)
    if not record then reply = 'lost'
    elseif record:byte() == 46 or redis.call('ZADD', scheduled, 'NX', ('%.0f'):format(due), member) == 0 then reply = 'dropped'
    else soonest = math.min(soonest, due) end
    if record then gone[#gone + 1] = entry end
  end
  replies[#replies + 1] = reply
end
if #gone > 0 then redis.call('XACK', ready, 'workers', unpack(gone)) redis.call('XDEL', ready, unpack(gone)) end
if soonest < (tonumber(redis.call('HGET', meta, 'wake') or -1)) then
  redis.call('HSET', meta, 'wake', ('%.0f'):format(soonest))
  redis.call('SPUBLISH', wake, ('%.0f'):format(soonest))
end
return replies
