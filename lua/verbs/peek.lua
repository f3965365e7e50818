#!lua flags=no-writes
-- peek: everything that is stored about one member, read at one moment.
-- USES  clock
-- KEYS  1 scheduled  2 jobs  3 runs  4 done  5 meta
-- ARGV  1 generation  2 member
-- RETURN {now, record or tombstone or '', due or '', run or '', over ms or ''}; {'moved',
--        generation}
local scheduled, jobs, runs, done, meta = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local generation, member = ARGV[1], ARGV[2]
local current = redis.call('HGET', meta, 'generation') or '0'
if current ~= generation then return { 'moved', current } end
return {
  ('%.0f'):format((clock())),
  redis.call('HGET', jobs, member) or '',
  redis.call('ZSCORE', scheduled, member) or '',
  redis.call('HGET', runs, member) or '',
  redis.call('ZSCORE', done, member) or '',
}
