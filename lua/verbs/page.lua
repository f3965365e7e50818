#!lua flags=no-writes
-- page: members of scheduled in the order of their due times, from a place on.
-- USES  place
-- KEYS  1 scheduled  2 meta
-- ARGV  1 generation  2 from  3 to  4 score  5 limit  then per place: member
--       from: a due time, or -inf; to: one as ZCOUNT takes it; score, member: the place of the
--       member looked at last, score '' and no member = from the beginning; limit: members, the
--       most
-- RETURN {'page', then member and score of each}; {'moved', generation}
local scheduled, meta = KEYS[1], KEYS[2]
local generation, from, to, score = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local limit, member = tonumber(ARGV[5]), ARGV[6]
local current = redis.call('HGET', meta, 'generation') or '0'
if current ~= generation then return { 'moved', current } end

local before = score ~= '' and firstBehind(scheduled, score, member)
local first = before or redis.call('ZCOUNT', scheduled, '-inf', '(' .. from)
local last = redis.call('ZCOUNT', scheduled, '-inf', to) - 1
local reply = { 'page' }
last = math.min(last, first + limit - 1)
if first > last then return reply end
for _, word in ipairs(redis.call('ZRANGE', scheduled, first, last, 'WITHSCORES')) do
  reply[#reply + 1] = word
end
return reply
