#!lua flags=no-writes
-- stats: the counts of one partition, read at one moment.
-- USES  clock, group
-- KEYS  1 scheduled  2 jobs  3 runs  4 ready  5 dead  6 done  7 leader  8 meta  9 stale
-- ARGV
-- RETURN {now, scheduled, head due or '', entries, pending, dead, done, jobs, runs, term or '',
--        ttl, notes of stale entries, meta field, value, ...}
local scheduled, jobs, runs, ready = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local dead, done, leader, meta, stale = KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local group = groupOf(ready)
local reply = {
  ('%.0f'):format((clock())),
  redis.call('ZCARD', scheduled),
  redis.call('ZRANGE', scheduled, 0, 0, 'WITHSCORES')[2] or '',
  redis.call('XLEN', ready),
  group and group.pending or 0,
  redis.call('XLEN', dead),
  redis.call('ZCARD', done),
  redis.call('HLEN', jobs),
  redis.call('HLEN', runs),
  redis.call('GET', leader) or '',
  redis.call('PTTL', leader),
  redis.call('ZCARD', stale),
}
for _, value in ipairs(redis.call('HGETALL', meta)) do
  reply[#reply + 1] = value
end
return reply
