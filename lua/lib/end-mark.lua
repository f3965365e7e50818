-- end-mark: what a completion says of the record of its job.
-- GIVES   endMark(jobs, member, word, isKept): the mark, its tags if it has any, and the note for a
--         history. `word` is the mark, a bar and the tags, a line break and the note, or less of
--         that; isKept: the mark is needed
-- NEEDS   tombstone, tags
-- RULE    A bar says that nothing else is to be known. Without one, an empty mark has the record
--         read.
local function endMark(jobs, member, word, isKept)
  local line = word:find('\n', 1, true)
  local mark, note = line and word:sub(1, line - 1) or word, line and word:sub(line + 1) or ''
  local bar = mark:find('|', 1, true)
  local tags = bar and mark:sub(bar + 1)
  mark = bar and mark:sub(1, bar - 1) or mark
  -- @known-mark
  if mark ~= '' or bar and not isKept then return mark, tags, note end
  --@lazy
  local found, record = markIn(jobs, member)
  return found, tags or tagsOf(record), note
end
