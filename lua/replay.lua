#!lua
-- replay: a dead letter becomes a scheduled job again, with fresh budgets and no expiry; attempts go on.
-- KEYS  1 scheduled  2 jobs  3 runs  4 dead  5 done  6 meta  7 wake
-- ARGV  1 now  2 generation  3 deadLetter  4 due
--       now ms, '' = server time; deadLetter: entry id in dead; due ms, '' = now
-- RETURN {'ok', due, member} | {'live', member} (a job of this id is live: the dead letter stays) | {'gone'} (no such dead letter) |
--        {'empty', member} (the dead letter has no record to replay) | {'moved', generation}
-- Zset, run and record are written before the dead letter is removed. If the call was cut off in between, the live job has
-- the dead letter's next generation and its token: the second call then only removes the dead letter and replies ok. The dead letter of
-- another death of the same job stays.
local scheduled, jobs, runs, dead = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local done, meta, wake, deadLetter = KEYS[5], KEYS[6], KEYS[7], ARGV[3]
local now = tonumber(ARGV[1])
if not now then local t = redis.call('TIME') now = t[1] * 1000 + math.floor(t[2] / 1000) end
local due = ('%.0f'):format(tonumber(ARGV[4]) or now)
local current = redis.call('HGET', meta, 'generation') or '0'
if current ~= ARGV[2] then return { 'moved', current } end
local found = redis.call('XRANGE', dead, deadLetter, deadLetter)[1]
if not found then return { 'gone' } end
local fields = {}
for at = 1, #found[2], 2 do fields[found[2][at]] = found[2][at + 1] end
local member, record = fields.member, fields.record
if not member or not record or record == '' then return { 'empty', member or '' } end

record = record:gsub('^(1%w+)(;[^|]*)', function(asked, deadLetters) return asked .. deadLetters:gsub(';[elp]=%w+', '') end)
local generation = (tonumber(fields.generation) or 0) + 1
local here = redis.call('HGET', jobs, member)
if here and here:byte() ~= 46 then
  local token, life = (redis.call('HGET', runs, member) or ''):match('^(%d+) (%d+)')
  if here ~= record or token ~= fields.token or tonumber(life) ~= generation then return { 'live', member } end
  -- @live-again
  redis.call('ZREM', done, member)
  redis.call('XDEL', dead, deadLetter)
  return { 'ok', redis.call('ZSCORE', scheduled, member) or due, member }
end
-- @index-job
redis.call('ZADD', scheduled, due, member)
redis.call('HSET', runs, member, ('%s %d %s 0 0 - - %s 0 - -'):format(fields.token or '0', generation, fields.attempts or '0', due))
-- @keep-record
redis.call('HSET', jobs, member, record)
redis.call('HINCRBY', meta, 'n.replayed', 1)
if tonumber(due) < (tonumber(redis.call('HGET', meta, 'wake') or -1)) then
  redis.call('HSET', meta, 'wake', due)
  redis.call('SPUBLISH', wake, due)
end
redis.call('ZREM', done, member)
-- @forget-letter
redis.call('XDEL', dead, deadLetter)
return { 'ok', due, member }
