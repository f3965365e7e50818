#!lua flags=no-writes
-- peek: everything that is stored about one member, read at one moment.
-- KEYS  1 scheduled  2 jobs  3 runs  4 done  5 meta
-- ARGV  1 generation  2 member
-- RETURN {now, record or tombstone or '', due or '', run or '', over ms or ''}; {'moved', generation}
local scheduled, jobs, runs, done, meta, member = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], ARGV[2]
local current = redis.call('HGET', meta, 'generation') or '0'
if current ~= ARGV[1] then return { 'moved', current } end
local t = redis.call('TIME')
return {
  ('%.0f'):format(t[1] * 1000 + math.floor(t[2] / 1000)),
  redis.call('HGET', jobs, member) or '',
  redis.call('ZSCORE', scheduled, member) or '',
  redis.call('HGET', runs, member) or '',
  redis.call('ZSCORE', done, member) or '',
}
