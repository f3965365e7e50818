#!lua flags=allow-oom
-- remove: a partition that holds no job and no dead letter vanishes with all its keys; with force,
-- whatever it holds.
-- USES  clock
-- KEYS  1 scheduled  2 jobs  3 runs  4 ready  5 dead  6 done  7 leader  8 meta  9 fires  10 fired
--       11 stale  12 tags  13 past  14 ended  15 minutes  16 cast  17 line  18 lanes  19 holds
--       20 groups  21 order  22 closed  23 why  24 diary  25 hours  26 days  27 causes  28 looks
--       29 logs  30 claims  31 spends
-- ARGV  1 now  2 force
--       now ms, '' = server time; force 1 = also what is not empty
-- RETURN {'ok' | 'holds', scheduled, entries of ready, dead}
-- The check and the removal are one step, so a job that is scheduled meanwhile is never lost.
-- UNLINK frees in the background: the size does not matter. Tombstones of jobs that are over hold
-- nothing.
local scheduled, jobs, runs, ready = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local dead, done, leader, meta = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local fires, fired, stale, tags = KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local past, ended, minutes, cast = KEYS[13], KEYS[14], KEYS[15], KEYS[16]
local line, lanes, holds, groups = KEYS[17], KEYS[18], KEYS[19], KEYS[20]
local order, closed, why, diary = KEYS[21], KEYS[22], KEYS[23], KEYS[24]
local hours, days, causes, looks, logs = KEYS[25], KEYS[26], KEYS[27], KEYS[28], KEYS[29]
local claims, spends = KEYS[30], KEYS[31]
local _, force = clock(ARGV[1]), ARGV[2]
local held = { redis.call('ZCARD', scheduled), redis.call('XLEN', ready), redis.call('XLEN', dead) }
local goes = force == '1' or held[1] + held[2] + held[3] == 0
if goes then
  redis.call('UNLINK', scheduled, jobs, runs, ready, dead, done, leader, meta, fires, fired, stale,
    tags, past, ended, minutes, cast, line, lanes, holds, groups, order,
    closed, why, diary, hours, days, causes, looks, logs, claims, spends)
end
return { goes and 'ok' or 'holds', held[1], held[2], held[3] }
