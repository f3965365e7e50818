-- history: the errors of a job, the newest five.
-- GIVES   lengthened(history, line): the history with one more line of JSON
-- USED BY  bury, commit, reclaim, retry
-- RULE    However often a job fails, its run and its dead letter stay small.
local function lengthened(history, line)
  history = history .. '\n' .. line
  while select(2, history:gsub('\n', '')) > 5 do
    history = history:gsub('^\n[^\n]*', '', 1)
  end
  return history
end
