package tool

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// chromium is a browser without a window that a test drives over a pipe.
type chromium struct {
	testing.TB
	to      io.Writer
	session string
	mu      sync.Mutex
	next    int
	replies map[int]chan json.RawMessage
	console []string // errors that the page logged or did not catch
	came    int      // bytes of answers and streams, decoded, since Network.enable
}

// startChromium starts a browser, or skips the test where there is none.
func startChromium(t testing.TB) *chromium {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("there is no chromium here (Debian's package chromium has it): the page is not looked at in a browser")
	}
	from, child, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	childIn, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "chromium") // not the test's own: a process of the browser may outlive it
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--remote-debugging-pipe", "--user-data-dir="+dir, "about:blank")
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	cmd.ExtraFiles = []*os.File{childIn, child}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = childIn.Close(), child.Close()
	c := &chromium{TB: t, to: to, replies: map[int]chan json.RawMessage{}}
	go c.read(from)
	t.Cleanup(func() {
		_, _ = io.WriteString(to, `{"id":0,"method":"Browser.close"}`+"\x00")
		late := time.AfterFunc(endTime, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		late.Stop()
		_, _, _ = from.Close(), to.Close(), os.RemoveAll(dir)
	})
	var target struct{ TargetID string }
	c.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	c.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	c.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Accessibility", "DOM"} {
		c.call(domain+".enable", nil, nil)
	}
	return c
}

// endTime is how long a browser may take to end.
const endTime = 5 * time.Second

// read takes in what the browser says, until it ends.
func (c *chromium) read(from io.Reader) {
	messages := bufio.NewReader(from)
	for {
		message, err := messages.ReadBytes(0)
		if err != nil {
			return
		}
		var m struct {
			ID     int
			Method string
			Params struct {
				DataLength       int
				Entry            struct{ Level, Text, URL string }
				ExceptionDetails struct {
					Text      string
					Exception struct{ Description string }
				}
			}
		}
		_ = json.Unmarshal(bytes.TrimSuffix(message, []byte{0}), &m)
		c.mu.Lock()
		switch {
		case m.ID > 0:
			c.replies[m.ID] <- message[:len(message)-1]
		case m.Method == "Network.dataReceived":
			c.came += m.Params.DataLength
		case m.Method == "Log.entryAdded" && m.Params.Entry.Level == "error":
			c.console = append(c.console, m.Params.Entry.Text+" "+m.Params.Entry.URL)
		case m.Method == "Runtime.exceptionThrown":
			c.console = append(c.console, m.Params.ExceptionDetails.Text+" "+m.Params.ExceptionDetails.Exception.Description)
		}
		c.mu.Unlock()
	}
}

// patience is how long a browser may take: the machine may be busy.
const patience = time.Minute

func (c *chromium) call(method string, params map[string]any, result any) {
	c.Helper()
	reply := make(chan json.RawMessage, 1)
	c.mu.Lock()
	c.next++
	id := c.next
	c.replies[id] = reply
	c.mu.Unlock()
	if params == nil {
		params = map[string]any{}
	}
	message := map[string]any{"id": id, "method": method, "params": params}
	if c.session != "" {
		message["sessionId"] = c.session
	}
	body, err := json.Marshal(message)
	if err != nil {
		c.Fatal(err)
	}
	if _, err := c.to.Write(append(body, 0)); err != nil {
		c.Fatal(method, err)
	}
	select {
	case body := <-reply:
		var r struct {
			Result json.RawMessage
			Error  *struct{ Message string }
		}
		if json.Unmarshal(body, &r) == nil && r.Error != nil && method == "Runtime.evaluate" && r.Error.Message == "Inspected target navigated or closed" {
			return // the page was loaded anew meanwhile: the expression comes to nothing
		}
		if err := json.Unmarshal(body, &r); err != nil || r.Error != nil {
			c.Fatalf("%s: %s, %v", method, body, err)
		}
		if result != nil {
			if err := json.Unmarshal(r.Result, result); err != nil {
				c.Fatal(method, err)
			}
		}
	case <-time.After(patience):
		c.Fatalf("%s: the browser does not answer", method)
	}
}

// eval returns what an expression of JavaScript comes to, as text.
func (c *chromium) eval(expression string) string {
	c.Helper()
	var r struct {
		Result           struct{ Value any }
		ExceptionDetails *struct{ Exception struct{ Description string } }
	}
	c.call("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true}, &r)
	if r.ExceptionDetails != nil {
		c.Fatalf("%s: %s", expression, r.ExceptionDetails.Exception.Description)
	}
	return fmt.Sprint(r.Result.Value)
}

// until waits until a condition of JavaScript holds.
func (c *chromium) until(condition string) {
	c.Helper()
	for end := time.Now().Add(patience); c.eval("!!("+condition+")") != "true"; {
		if time.Now().After(end) {
			c.Fatalf("it does not come true that %s; the page is:\n%s\nconsole: %q", condition, c.eval("document.body.innerText"), c.console)
		}
		c.eval("new Promise(done => setTimeout(done, 50))")
	}
}

// open opens an address and waits for the page.
func (c *chromium) open(address string) {
	c.Helper()
	c.call("Page.navigate", map[string]any{"url": address}, nil)
	c.until(`document.querySelector("h1") && document.querySelector("main").getAttribute("aria-busy") === "false"`)
}

// route opens a route of the page.
func (c *chromium) route(hash string) {
	c.Helper()
	c.eval(fmt.Sprintf("location.hash = %q", hash))
	c.until(fmt.Sprintf(`location.hash === %q`, hash))
	c.eval("new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)))")
	c.until(`document.querySelector("main").getAttribute("aria-busy") === "false"`)
}

// press presses a key.
func (c *chromium) press(key string) {
	c.Helper()
	codes := map[string]int{"Enter": 13, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Tab": 9, "Escape": 27}
	params := map[string]any{"type": "keyDown", "key": key, "windowsVirtualKeyCode": codes[key]}
	if len(key) == 1 {
		params["text"] = key
	}
	if key == "Enter" {
		params["text"] = "\r"
	}
	c.call("Input.dispatchKeyEvent", params, nil)
	c.call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key, "windowsVirtualKeyCode": codes[key]}, nil)
}

// named returns how many elements have the role and the accessible name.
func (c *chromium) named(role, name string) int {
	c.Helper()
	var document struct{ Root struct{ NodeID int } }
	c.call("DOM.getDocument", nil, &document)
	var found struct{ Nodes []struct{ Ignored bool } }
	c.call("Accessibility.queryAXTree", map[string]any{"nodeId": document.Root.NodeID, "role": role, "accessibleName": name}, &found)
	n := 0
	for _, node := range found.Nodes {
		if !node.Ignored {
			n++
		}
	}
	return n
}

// picture writes a picture of the page to the folder of BERTH_PICTURES, if that is set.
func (c *chromium) picture(name string) {
	c.Helper()
	dir := os.Getenv("BERTH_PICTURES")
	if dir == "" {
		return
	}
	var shot struct{ Data string }
	c.call("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true}, &shot)
	body, err := base64.StdEncoding.DecodeString(shot.Data)
	if err == nil {
		err = os.WriteFile(dir+"/"+name+".png", body, 0o600)
	}
	if err != nil {
		c.Error(err)
	}
}

// size sets the size of the window, and the theme that the system prefers.
func (c *chromium) size(width, height int, theme string) {
	c.Helper()
	c.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
	c.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": theme}}}, nil)
}

// quiet fails the test if the page logged an error or did not catch one.
func (c *chromium) quiet() {
	c.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.console) > 0 {
		c.Errorf("the page logged %s", strings.Join(c.console, "\n"))
	}
}
