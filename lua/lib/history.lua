-- history: the errors of a job, the newest five.
-- GIVES   lengthened(history, line, keepsAll): the history with one more line of JSON
-- USED BY  bury, commit, reclaim, retry
-- RULE    However often a job fails, its run and its dead letter stay small: only the newest stack
--         stays, unless the queue keeps a history (keepsAll). The stack comes last in a line, so
--         that it is found without parsing.
local function lengthened(history, line, keepsAll)
  if not keepsAll and line:find(',"s":"', 1, true) then
    history = history:gsub(',"s":"[^\n]*"}', '}')
  end
  history = history .. '\n' .. line
  while select(2, history:gsub('\n', '')) > 5 do
    history = history:gsub('^\n[^\n]*', '', 1)
  end
  return history
end
