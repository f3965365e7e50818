#!lua
-- issue: a token of the HTTP API is added, if the tokens still are those that were read. Those of
-- them that have expired go.
-- USES  clock
-- KEYS  1 tokens
-- ARGV  1 now  2 id  3 token  4 most  then per token: known, expires
--       now ms, '' = server time; id and token: of the new one, as it is stored; most: as many
--       there may be; known: the id of a token that was read; expires ms, '' = never
-- RETURN ok (also when it is there already) | changed (another one came or went since they were
--        read) | full (as many as there may be have not expired)
-- No token is ever written anew under its id, so the same ids are the same tokens. Whether one has
-- expired says the clock of Redis, not that of a caller. No allow-oom: a full Redis refuses it up
-- front.
local tokens = KEYS[1]
local now, id, token, most = clock(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4])
if redis.call('HGET', tokens, id) == token then return 'ok' end

local expired, count = {}, 0
for at = 5, #ARGV, 2 do
  if redis.call('HSTRLEN', tokens, ARGV[at]) == 0 then return 'changed' end
  local expires = tonumber(ARGV[at + 1])
  if expires and expires <= now then
    expired[#expired + 1] = ARGV[at]
  end
  count = count + 1
end
if redis.call('HLEN', tokens) ~= count then return 'changed' end
if count - #expired >= most then return 'full' end

redis.call('HSET', tokens, id, token)
for _, known in ipairs(expired) do
  redis.call('HDEL', tokens, known)
end
return 'ok'
