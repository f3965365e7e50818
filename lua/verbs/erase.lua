#!lua flags=allow-oom
-- erase: records of the history that have a tag go for ever, or are only counted, a bounded batch
-- per call, the earliest end first.
-- USES  clock, place
-- KEYS  1 past  2 ended
-- ARGV  1 now  2 tag  3 mode  4 score  5 limit  then per place: id
--       now ms, '' = server time
--       mode: count | remove; score, id: the place of the record looked at last, score '' and no id
--       = from the beginning; limit: records looked at, the most
-- RETURN {matched, looked at, then score and id of the record looked at last, if there may be more}
-- They are matched here, so that nothing travels, and none goes that took the place of another
-- since it was looked at. A call ends when it has read 256 KiB. The record goes first and its place
-- in the order of ends last, as in sweep. An earlier life of the same id is a record of its own: it
-- moves behind its place, never in front of it, so a walk meets it.
local past, ended = KEYS[1], KEYS[2]
local _, tag, mode, score = clock(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]
local limit, id = tonumber(ARGV[5]), ARGV[6]
local function firstEnded()
  local low = redis.call('ZCOUNT', ended, '-inf', '(' .. score)
  local high = redis.call('ZCOUNT', ended, '-inf', score)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local isIt = isBehind(redis.call('ZRANGE', ended, middle, middle)[1], id)
    low, high = isIt and low or middle + 1, isIt and middle or high
  end
  return low
end

local function hasTag(text)
  local tags = text:match('^1[^\n]* (%S+)\n')
  return tags and tags ~= '-' and (',' .. tags .. ','):find(',' .. tag .. ',', 1, true)
end

local first, most = score == '' and 0 or firstEnded(), math.min(limit, 200)
local words = redis.call('ZRANGE', ended, first, first + most - 1, 'WITHSCORES')
local found, looked, bytes = {}, 0, 0
while looked * 2 < #words and bytes < 262144 do
  local at = looked * 2 + 1
  local text = redis.call('HGET', past, words[at]) or ''
  looked, bytes = looked + 1, bytes + #text
  if hasTag(text) then
    found[#found + 1] = words[at]
  end
end
if mode == 'remove' and #found > 0 then
  redis.call('HDEL', past, unpack(found))
  redis.call('ZREM', ended, unpack(found))
end
local reply = { #found, looked }
-- All that are there, and fewer than were asked for: nothing is behind them.
if looked == most or looked * 2 < #words then
  reply[3], reply[4] = words[looked * 2], words[looked * 2 - 1]
end
return reply
