-- joining: whether a job may come into being as a member of a set, or take the place of one.
-- GIVES   joinReply(keys, text, before, reply, due): the reply to a job that would be made, or
--         would replace one; text and before are its tags, and those of the job that it replaces
-- NEEDS   sets
-- RULE    A member needs its set, as long as the callback was not made. Nobody leaves a set but by
--         its end. A caller that names no tags could enter no member.
local function joinReply(keys, text, before, reply, due)
  local name, had = text and setIn(text), before and setIn(before)
  if reply == 'replaced' and had ~= name then return ('exists %.0f'):format(due) end
  if not name then return reply end
  -- @no-tags-key
  if not keys.tags then return 'bad-record' end
  local set = setOf(keys, name)
  return set and set.sealed ~= '2' and reply or 'no-set'
end
