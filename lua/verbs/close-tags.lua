#!lua flags=allow-oom
-- close-tags: no job with a tag starts in this partition until an end, or it may start again. Many
-- tags per call.
-- USES  clock, open-tags
-- KEYS  1 meta  2 closed  3 why
-- ARGV  1 now  2 generation  3 mode  4 until  5 text  6 most  then per tag: tag
--       now ms, '' = server time
--       generation: see schedule; mode close | open; until ms; text: why, for people, as JSON;
--       most: so many tags may be closed
-- RETURN one text per tag: closed | longer (it was closed, for less long) | already <until> (it is
--        closed for as long or longer) | full (so many are closed; nothing was changed) | opened |
--        open (it was not closed); or {'moved', generation} when the partition has another
--        generation
-- The longest end wins, so a late repetition of a call shortens nothing. What runs goes on: see
-- cancel. Meta says first that tags are closed, as a start looks for them only then, and the text
-- comes last. Few bytes, also at the memory limit: who closes a tag spares somebody else a start.
local meta, closed, why = KEYS[1], KEYS[2], KEYS[3]
local keys = { meta = meta, closed = closed, why = why }
local _, sign, layout = clock(ARGV[1]), ARGV[2]:match('^([=+]?)(.*)$')
local mode, untilMs, text, most = ARGV[3], tonumber(ARGV[4]), ARGV[5], tonumber(ARGV[6])

local state = redis.call('HMGET', meta, 'generation', 'closed')
if (state[1] or sign ~= '=' and '0') ~= layout then return { 'moved', state[1] or '0' } end
local list, replies = {}, {}
for at = 7, #ARGV do
  list[#list + 1] = ARGV[at]
end
local ends = redis.call('ZMSCORE', closed, unpack(list))
local room = most - redis.call('ZCARD', closed)

local function shut(tag)
  -- An earlier one of this call may be the same.
  local before = redis.call('ZSCORE', closed, tag)
  local isLonger = before and tonumber(before) < untilMs
  if not before and room <= 0 then return 'full' end
  if before and not isLonger then
    if tonumber(before) == untilMs and not redis.call('HGET', why, tag) then
      -- A call that was cut off.
      redis.call('HSET', why, tag, text)
    end
    return 'already ' .. before
  end
  room = room - (before and 0 or 1)
  redis.call('ZADD', closed, ('%.0f'):format(untilMs), tag)
  redis.call('HSET', why, tag, text)
  return before and 'longer' or 'closed'
end

if mode == 'open' then
  openTags(keys, list)
elseif not state[2] then
  redis.call('HSET', meta, 'closed', '1')
end
if mode == 'close' and sign == '+' and not state[1] then
  redis.call('HSET', meta, 'generation', layout)
end
for at, tag in ipairs(list) do
  replies[at] = mode == 'close' and shut(tag) or ends[at] and 'opened' or 'open'
end
return replies
