#!lua flags=allow-oom
-- disband: a set is there no longer. Its members stay, and nothing is made when they are over.
-- USES  clock, sets
-- KEYS  1 jobs  2 meta  3 tags
-- ARGV  1 now  2 generation  3 set
--       now ms, '' = server time
--       set: its name
-- RETURN ok | unknown (there is no such set); or {'moved', generation} when the partition has
--        another generation
local jobs, meta, tags = KEYS[1], KEYS[2], KEYS[3]
local _, generation, name = clock(ARGV[1]), ARGV[2], ARGV[3]
local keys = { jobs = jobs, tags = tags }
local current = redis.call('HGET', meta, 'generation') or '0'
if current ~= generation then return { 'moved', current } end
if not setOf(keys, name) then return 'unknown' end
forgetSet(keys, name)
return 'ok'
