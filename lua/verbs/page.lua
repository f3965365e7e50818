#!lua flags=no-writes
-- page: members of scheduled in the order of their due times, from a place on.
-- KEYS  1 scheduled  2 meta
-- ARGV  1 generation  2 from  3 to  4 score  5 limit  then per place: member
--       from: a due time, or -inf; to: one as ZCOUNT takes it; score, member: the place of the
--       member looked at last, score '' and no member = from the beginning; limit: members, the
--       most
-- RETURN {'page', then member and score of each}; {'moved', generation}
-- A place is a due time and a member and no rank: what leaves the front meanwhile shifts nothing.
-- Among the members of one due time the first one behind it is looked for by halving, and compared
-- byte by byte, because Lua compares texts by the locale of the server.
local scheduled, meta = KEYS[1], KEYS[2]
local generation, from, to, score = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local limit, member = tonumber(ARGV[5]), ARGV[6]
local current = redis.call('HGET', meta, 'generation') or '0'
if current ~= generation then return { 'moved', current } end

local function isBehind(other)
  for at = 1, math.min(#other, #member) do
    local one, two = other:byte(at), member:byte(at)
    if one ~= two then return one > two end
  end
  return #other > #member
end

local function firstBehind()
  local low = redis.call('ZCOUNT', scheduled, '-inf', '(' .. score)
  local high = redis.call('ZCOUNT', scheduled, '-inf', score)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local isIt = isBehind(redis.call('ZRANGE', scheduled, middle, middle)[1])
    low, high = isIt and low or middle + 1, isIt and middle or high
  end
  return low
end

local before = score ~= '' and firstBehind()
local first = before or redis.call('ZCOUNT', scheduled, '-inf', '(' .. from)
local last = redis.call('ZCOUNT', scheduled, '-inf', to) - 1
local reply = { 'page' }
last = math.min(last, first + limit - 1)
if first > last then return reply end
for _, word in ipairs(redis.call('ZRANGE', scheduled, first, last, 'WITHSCORES')) do
  reply[#reply + 1] = word
end
return reply
