-- delivery: entries of ready that nobody was given yet become a consumer's.
-- GIVES   deliver(ready, consumer, count): entry, member and due of each, in one list; the error
--         with which Redis refused
-- RULE    The group may have vanished: that is told, and stops nothing.
local function deliver(ready, consumer, count)
  local entries, read = {}, redis.pcall('XREADGROUP', 'GROUP', 'workers', consumer, 'COUNT', count,
    'STREAMS', ready, '>')
  if read and read.err then return entries, read.err end
  for _, one in ipairs(read and read[1][2] or {}) do
    local size, fields, named = #entries, one[2], { member = '', due = '0' }
    for at = 1, #fields, 2 do
      named[fields[at]] = fields[at + 1]
    end
    entries[size + 1], entries[size + 2], entries[size + 3] = one[1], named.member, named.due
  end
  return entries
end
