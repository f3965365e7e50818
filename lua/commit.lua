#!lua
-- commit: a running job is over, together with effects its handler asked for, in one step on the partition's slot.
-- KEYS  1 scheduled  2 jobs  3 runs  4 ready  5 done  6 meta  then one key per command
-- ARGV  1 now  2 window  3 entry  4 member  5 token  then per command: size, name, words
--       now ms, '' = server time; window ms of stubs; size: number of words after the key; a command is name, key, words
-- RETURN 'ok' | 'cancelled' (a cancel was requested: no effect) | 'already' | 'fenced' | 'gone'
-- The effects come first: if one is refused, the job is not over, the error reaches the caller, and effects before it
-- stay. No allow-oom, because the effects may need memory; nothing has happened then.
local scheduled, jobs, runs, ready, done, meta = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local now, window, entry, member, token = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], ARGV[4], ARGV[5]
if not now then local t = redis.call('TIME') now = t[1] * 1000 + math.floor(t[2] / 1000) end
local last, attempts, here, cancel, asked, digest =
  (redis.call('HGET', runs, member) or ''):match('^(%d+) %d+ (%d+) %d+ %d+ (%S+) %S+ %S+ (%d) (%S+) (%S+)')
if not last then
  local settled = (redis.call('HGET', jobs, member) or ''):match('^%.%w+ %S+ (%d+)')
  return settled == token and 'already' or 'gone'
end
if last == token and here == '-' then return 'already' end
if last ~= token or here ~= entry then return 'fenced' end

local at = 6
for index = 7, cancel == '1' and 0 or #KEYS do
  local size = tonumber(ARGV[at])
  redis.call(ARGV[at + 1], KEYS[index], unpack(ARGV, at + 2, at + 1 + size))
  at = at + 2 + size
end
if redis.call('ZSCORE', scheduled, member) then redis.call('HINCRBY', meta, 'n.adopted', 1)
elseif window > 0 then
  redis.call('HSET', jobs, member, ('.%s%s %s %s %s -'):format(cancel == '1' and 'c' or 'd', asked, digest, token, attempts))
  redis.call('ZADD', done, now, member)
else redis.call('HDEL', jobs, member) end
redis.call('HINCRBY', meta, cancel == '1' and 'n.cancelled' or 'n.done', 1)
redis.call('HDEL', runs, member)
redis.call('XACK', ready, 'workers', entry)
redis.call('XDEL', ready, entry)
return cancel == '1' and 'cancelled' or 'ok'
