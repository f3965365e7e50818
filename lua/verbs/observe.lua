#!lua flags=allow-oom
-- observe: the leader writes into the diary that no worker serves its partition, or that one does.
-- USES  clock, diary
-- KEYS  1 leader  2 meta  3 diary
-- ARGV  1 now  2 term  3 state  4 ago
--       now ms, '' = server time; term: the leader's; state: unserved | served; ago: how many ms
--       ago the last worker gave its last sign of life
-- RETURN ok | same (it was told already) | fenced (the term is not the leader's)
-- What was told stands in meta as well, so that the next leader tells nothing twice.
local leader, meta, diary = KEYS[1], KEYS[2], KEYS[3]
local now, term, state, ago = clock(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4])
if redis.call('GET', leader) ~= term then return 'fenced' end
local since = redis.call('HGET', meta, 'unserved')
if (since and 'unserved' or 'served') == state then return 'same' end
if since then
  redis.call('HDEL', meta, 'unserved')
else
  since = ('%.0f'):format(now - ago)
  redis.call('HSET', meta, 'unserved', since)
end
enter(diary, { 'what', state, 'from', since })
return 'ok'
