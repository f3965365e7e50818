-- closed-tags: whether a tag of a job is closed.
-- GIVES   closedBy(closed, record): the tag of the record that is closed for the longest, and its
--         end; closedReply(closed, record, reply): the reply to a job that would be made or
--         replaced, if it must not be
-- NEEDS   tags
-- RULE    A tag is closed while it stands in `closed`, whatever the clock says. The caller hands
--         `closed` on only where meta says that a tag is closed. Entries that begin with = are no
--         tags of anybody's: in a header = is a space.
local function closedBy(closed, record)
  local text = closed and tagsOf(record)
  if not text then return nil end
  local tags, found, last = {}, nil, nil
  for tag in text:gmatch('[^,%z]+') do
    -- @ten-asked
    if #tags < 10 and #tag <= 64 and tag:byte() ~= 32 then
      tags[#tags + 1] = tag:gsub(' ', '=')
    end
  end
  -- @no-tags
  if #tags == 0 then return nil end
  for at, score in ipairs(redis.call('ZMSCORE', closed, unpack(tags))) do
    if score and not (last and tonumber(score) <= tonumber(last)) then
      found, last = tags[at], score
    end
  end
  return found, last
end

local function closedReply(closed, record, reply)
  if reply ~= 'ok' and reply ~= 'replaced' then return reply end
  local tag, last = closedBy(closed, record)
  return tag and ('closed %s %s'):format(last, tag) or reply
end
