#!lua flags=no-writes
-- stats: the counts of one partition, read at one moment.
-- USES  clock, digits, line, group
-- KEYS  1 scheduled  2 jobs  3 runs  4 ready  5 dead  6 done  7 leader  8 meta  9 stale  10 tags
-- ARGV
-- RETURN {now, scheduled, head due or '', entries, pending, dead, done, jobs, runs, term or '',
--        ttl, notes of stale entries, waiting in line, due time of the one that has waited longest
--        or '', sets whose callbacks were not made yet, meta field, value, ...}
-- Scheduled is all but those in line. A job that is not due is scheduled, also where it was offered
-- ahead, or a worker holds it; its entry counts nowhere.
local scheduled, jobs, runs, ready = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local dead, done, leader, meta, stale = KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local tags = KEYS[10]
local group = groupOf(ready)
local now, all = clock(), redis.call('HGETALL', meta)

-- Entries of jobs that are not due, among the newest, and how many of these jobs are held.
local function early(to, from)
  local members = {}
  for _, one in ipairs(redis.call('XREVRANGE', ready, to, from, 'COUNT', 1000)) do
    members[#members + 1] = tonumber(one[2][4]) > now and one[2][2] or nil
  end
  local held = 0
  local scores = #members > 0 and redis.call('ZMSCORE', scheduled, unpack(members)) or {}
  for _, waits in ipairs(scores) do
    held = held + (waits and 0 or 1)
  end
  return #members, held
end

local delivered, held, offered = 0, 0, 0
for at = 1, #all, 2 do
  if group and all[at] == 'ahead' and tonumber(all[at + 1]) > now then
    delivered, held = early(group.delivered, ('%.0f'):format(now - 10000))
    offered = early('+', '(' .. group.delivered)
  end
end
local low, high = ('%.0f'):format(WAITS), ('(%.0f'):format(WAITS_END)
local waiting = redis.call('ZCOUNT', scheduled, low, high)
local head = redis.call('ZRANGE', scheduled, 0, 0, 'WITHSCORES')[2]
local longest = redis.call('ZRANGEBYSCORE', scheduled, low, high, 'WITHSCORES', 'LIMIT', 0, 1)[2]
local reply = {
  ('%.0f'):format(now),
  redis.call('ZCARD', scheduled) - waiting + held,
  not isWaiting(head) and head or '',
  redis.call('XLEN', ready) - delivered - offered,
  group and group.pending - delivered or 0,
  redis.call('XLEN', dead),
  redis.call('ZCARD', done),
  redis.call('HLEN', jobs),
  redis.call('HLEN', runs),
  redis.call('GET', leader) or '',
  redis.call('PTTL', leader),
  redis.call('ZCARD', stale),
  waiting,
  dueText(longest) or '',
  redis.call('ZLEXCOUNT', tags, '[=sets\0', '(=sets\1'),
}
for _, value in ipairs(all) do
  reply[#reply + 1] = value
end
return reply
