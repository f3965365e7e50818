#!lua
-- mend-tags: the index of tags is made to say what the headers of records say. Many per call.
-- USES  tombstone, tags, budget, tag-entries
-- KEYS  1 jobs  2 tags
-- ARGV  1 bytes  then per damage: kind, name
--       bytes of records per call; kind untagged: name is a member whose tags are not all there;
--       astray: name is an entry whose job is over or has another header, or whose set is gone;
--       unlisted: name is that of a set
-- RETURN one text per damage: repaired | sound (nothing to repair) | later (not looked at: too many
--        bytes, call again)
-- Each is judged again, at this moment. No allow-oom: a full Redis refuses it up front.
local jobs, tags, bytes = KEYS[1], KEYS[2], tonumber(ARGV[1])

local replies, spent, mend = {}, 0, {}

function mend.untagged(member, record)
  if not lacksTags(tags, member, record) then return 'sound' end
  addTags(tags, { { member = member, text = tagsOf(record) } })
  return 'repaired'
end

function mend.astray(entry, record)
  if not isAstray(entry, record) then return 'sound' end
  return redis.call('ZREM', tags, entry) == 1 and 'repaired' or 'sound'
end

function mend.unlisted(name, record)
  if not record or redis.call('ZSCORE', tags, '=sets\0' .. name) then return 'sound' end
  redis.call('ZADD', tags, 0, '=sets\0' .. name)
  return 'repaired'
end

for at = 2, #ARGV, 2 do
  local kind, name, record = ARGV[at], ARGV[at + 1], nil
  if spent then
    local field = kind == 'astray' and memberIn(name) or kind == 'unlisted' and '\0set\0' .. name
    spent, record = readWithin(jobs, field or name, bytes, spent)
  end
  replies[#replies + 1] = spent and mend[kind](name, record) or 'later'
end
return replies
