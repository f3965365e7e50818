-- delivery: entries of ready that nobody was given yet become a consumer's.
-- GIVES   deliver(ready, consumer, count): entry, member and due of each, in one list; the error
--         with which Redis refused
-- USED BY  relay, serve
-- RULE    The group may have vanished: that is told, and stops nothing. Entries are as promote
--         writes them, but for those of a person.
local function namedIn(fields)
  local named = { member = '', due = '0' }
  for at = 1, #fields, 2 do
    named[fields[at]] = fields[at + 1]
  end
  return named.member, named.due
end

local function deliver(ready, consumer, count)
  local entries, read = {}, redis.pcall('XREADGROUP', 'GROUP', 'workers', consumer, 'COUNT', count,
    'STREAMS', ready, '>')
  if read and read.err then return entries, read.err end
  for _, one in ipairs(read and read[1][2] or {}) do
    local size, fields = #entries, one[2]
    local member, due = fields[2], fields[4]
    if #fields ~= 4 or fields[1] ~= 'member' or fields[3] ~= 'due' then
      -- rarely
      member, due = namedIn(fields)
    end
    entries[size + 1], entries[size + 2], entries[size + 3] = one[1], member, due
  end
  return entries
end
