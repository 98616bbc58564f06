-- Requests for wrk of which no two are alike, and a check of every answer. Arguments: "template" or "file", the template
-- or the file, number of the first request, text that an answer holds, its length or 0, "id" where it echoes an id.
local threads = {}

-- read by `done` from the thread, so these have to be global
sent, wrong = 0, 0

local nextBody, contains, length, echoes, head, example
local waiting = {}

function setup(thread)
  table.insert(threads, thread)
end

function init(args)
  local first = tonumber(args[3])
  contains, length, echoes = args[4], tonumber(args[5]), args[6] == "id"
  head = string.format(
    "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: ", wrk.path, wrk.headers["Host"])
  if args[1] == "template" then
    local template, _ = args[2]
    local _, numbers = string.gsub(template, "%%", "")
    nextBody = function(index)
      local number = first + index
      if echoes then waiting[tostring(number)] = true end
      if numbers == 1 then return string.format(template, number) end
      return string.format(template, number, number)
    end
  else
    local lines = io.lines(args[2])
    for _ = 1, first do lines() end
    nextBody = function() return lines() end
  end
end

function request()
  local body = nextBody(sent)
  sent = sent + 1
  if body == nil then
    -- the file has run out: no figure is better than one over repeated requests
    wrong = wrong + 1
    body = ""
  end
  return head .. #body .. "\r\n\r\n" .. body
end

function response(status, _, body)
  local right = status == 200 and string.find(body, contains, 1, true) ~= nil and (length == 0 or #body == length)
  if right and echoes then
    local id = string.match(body, '"id":(%d+)')
    right = waiting[id] == true
    waiting[id] = nil
  end
  if not right then
    wrong = wrong + 1
    if example == nil then
      example = body
      io.write("wrong answer: ", status, " ", string.sub(body, 1, 500), "\n")
    end
  end
end

function done(summary, latency)
  local all, bad = 0, 0
  for _, thread in ipairs(threads) do
    all = all + thread:get("sent")
    bad = bad + thread:get("wrong")
  end
  local errors = summary.errors
  io.write(string.format(
    '\n{"sent":%d,"requests":%d,"seconds":%.6f,"p50Millis":%.3f,"p99Millis":%.3f,"wrong":%d,"broken":%d}\n',
    all, summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    bad + errors.status, errors.connect + errors.read + errors.write + errors.timeout))
end
