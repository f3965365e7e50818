-- tags: the index of tags. A job stands there once for each tag in the header of its record, the
-- letter t: as the tag, a zero byte and its member.
-- GIVES   tagsOf(record): its tags as the header has them, or nil; addTags(tags, list): enters
--         those of a list of {member, text}; dropTags(tags, member, text, kept): takes them out,
--         but not those in `kept`
-- RULE    Entered before the record is written, taken out after it is gone: what a call that was
--         cut off leaves is an entry too many, never one too few. Readers look at the header.
--         In a header = is a space, and ten tags count. The priority of a job is such an
--         entry, =high or =low. A foreign caller may leave the key out.
local function tagsOf(record)
  -- Nearly all records have none: a pattern would try every place of the header first.
  local isLikely = record and record:find(';t=', 1, true)
  return isLikely and record:match('^1%w+[^|]-;t=([^;|]+)') or nil
end

local function addTags(tags, list)
  -- @no-key
  if not tags then return end
  for _, job in ipairs(list) do
    local words = {}
    for tag in (job.text or ''):gmatch('[^,%z]+') do
      -- @ten-entered
      if #words < 20 and #tag <= 64 then
        words[#words + 1], words[#words + 2] = 0, tag:gsub(' ', '=') .. '\0' .. job.member
      end
    end
    if #words > 0 then
      redis.call('ZADD', tags, unpack(words))
    end
  end
end

local function dropTags(tags, member, text, kept)
  if not (tags and text) then return end
  local gone = {}
  for tag in text:gmatch('[^,%z]+') do
    local stays = kept and (',' .. kept .. ','):find(',' .. tag .. ',', 1, true)
    -- @ten-taken-out
    if #gone < 10 and #tag <= 64 and not stays then
      gone[#gone + 1] = tag:gsub(' ', '=') .. '\0' .. member
    end
  end
  if #gone > 0 then
    redis.call('ZREM', tags, unpack(gone))
  end
end
