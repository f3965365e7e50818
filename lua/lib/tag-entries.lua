-- tag-entries: what the index of tags should hold of a job.
-- GIVES   tagEntries(record, member): its entries; lacksTags(tags, member, record): whether one of
--         them is missing; noteUntagged(found, tags, member, record): tells so among findings;
--         isAstray(entry, record): whether the header of the record, which is the one of its
--         member, has no such tag; memberIn(entry): of an entry
--         that lists a set, the field of jobs that says how far it is
-- NEEDS   tombstone, tags
-- RULE    The header says which tags there are, and the index follows it.
local function memberIn(entry)
  local zero = entry:find('\0', 1, true)
  local member = zero and entry:sub(zero + 1) or ''
  return entry:find('^=sets%z') and '\0set\0' .. member or member
end

local function tagEntries(record, member)
  local entries, text = {}, not isTombstone(record) and tagsOf(record)
  for tag in (text or ''):gmatch('[^,%z]+') do
    if #entries < 10 and #tag <= 64 then
      entries[#entries + 1] = tag:gsub(' ', '=') .. '\0' .. member
    end
  end
  return entries
end

local function lacksTags(tags, member, record)
  for _, entry in ipairs(tagEntries(record, member)) do
    if not redis.call('ZSCORE', tags, entry) then return true end
  end
  return false
end

local function noteUntagged(found, tags, member, record)
  if lacksTags(tags, member, record) then
    found[#found + 1], found[#found + 2], found[#found + 3] = 'untagged', member, ''
  end
end

local function isAstray(entry, record)
  if entry:find('^=sets%z') then return not record end
  for _, one in ipairs(tagEntries(record, memberIn(entry))) do
    if one == entry then return false end
  end
  return true
end
