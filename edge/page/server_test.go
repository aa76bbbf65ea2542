package page

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/berth-scheduler/berth/edge/api"
)

// served is a server for port 9259 before a daemon that the test stands for.
type served struct {
	testing.TB
	*Server
	now    time.Time
	asked  atomic.Int32 // how often the daemon or a command was
	reply  func(what string, query map[string][]string) *http.Response
	cookie *http.Cookie
}

// reply is an answer of the daemon.
func reply(code int, kind, body string) *http.Response {
	return &http.Response{StatusCode: code, Status: http.StatusText(code), Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader(body))}
}

func newServed(t testing.TB) *served {
	s := &served{TB: t, now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)}
	s.reply = func(what string, query map[string][]string) *http.Response {
		return reply(http.StatusOK, "application/json", what+"?"+url.Values(query).Encode())
	}
	s.Server = NewServer(Options{
		Now: func() time.Time { return s.now },
		Data: func(_ context.Context, what string, query map[string][]string, _ http.Header) (*http.Response, error) {
			s.asked.Add(1)
			return s.reply(what, query), nil
		},
		Asks: map[string]Ask{"what-if": func(_ context.Context, question []byte) ([]byte, error) {
			s.asked.Add(1)
			return question, nil
		}},
	}, Port)
	t.Cleanup(s.stream.close)
	return s
}

// do makes a request of the page that has the cookie, if there is one yet. change may make another of it.
func (s *served) do(method, target, body string, change func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Host = "127.0.0.1:9259"
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	if s.cookie != nil {
		r.AddCookie(s.cookie)
	}
	if change != nil {
		change(r)
	}
	ctx, cancel := context.WithTimeout(s.Context(), 10*time.Second) // a stream that should have been refused ends
	defer cancel()
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r.WithContext(ctx))
	return w
}

// enter opens the address that the server prints.
func (s *served) enter() {
	w := s.do(http.MethodGet, strings.TrimPrefix(s.Address(), "http://127.0.0.1:9259"), "", nil)
	cookies := w.Result().Cookies()
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/" || len(cookies) != 1 {
		s.Fatalf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	s.cookie = cookies[0]
}

// The address opens the page once, for a minute, and gives a cookie that no script can read and no
// other site sends.
func TestOneTimeCode(t *testing.T) {
	s := newServed(t)
	first := strings.TrimPrefix(s.Address(), "http://127.0.0.1:9259")
	open := func(path string) int { return s.do(http.MethodGet, path, "", nil).Code }
	for _, wrong := range []string{"/start", "/start?once=", "/start?once=x", first + "x", first[:len(first)-1]} {
		if code := open(wrong); code != http.StatusForbidden {
			t.Errorf("%s: %d", wrong, code)
		}
	}
	if code := s.do(http.MethodPost, first, "", nil).Code; code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", code)
	}
	if w := s.do(http.MethodGet, first, "", nil); w.Code != http.StatusSeeOther || !strings.Contains(w.Header().Get("Set-Cookie"), "; Path=/; HttpOnly; SameSite=Strict") || strings.Contains(w.Body.String(), "once") {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	if code := open(first); code != http.StatusForbidden {
		t.Errorf("the same address again: %d", code)
	}
	late := strings.TrimPrefix(s.Address(), "http://127.0.0.1:9259")
	s.now = s.now.Add(codeTime)
	if code := open(late); code != http.StatusForbidden {
		t.Errorf("after %s: %d", codeTime, code)
	}
}

// Nobody has data without the cookie; the empty page is for all.
func TestCookie(t *testing.T) {
	s := newServed(t)
	wrong := func(r *http.Request) { r.AddCookie(&http.Cookie{Name: "berth-9259", Value: "x"}) }
	for _, route := range routes() {
		for _, change := range []func(*http.Request){nil, wrong} {
			if w := s.do(route.method, route.path, "{}", change); w.Code != http.StatusUnauthorized || problemOf(t, w).Reason != "NoSession" {
				t.Errorf("%s: %d %s", route.path, w.Code, w.Body)
			}
		}
	}
	for _, path := range []string{"/", "/page.js", "/page.css", "/icon.svg", "/licenses.txt"} {
		if w := s.do(http.MethodGet, path, "", nil); w.Code != http.StatusOK || w.Body.Len() == 0 || w.Header().Get("Content-Type") == "" {
			t.Errorf("%s: %d %v", path, w.Code, w.Header())
		}
	}
	if n := s.asked.Load(); n > 0 {
		t.Errorf("the daemon was asked %d times", n)
	}
}

type route struct{ method, path string }

// routes are all that answer with data.
func routes() []route {
	list := []route{{http.MethodPost, api.Prefix + "what-if"}, {http.MethodGet, api.Prefix + "watch"}}
	for _, what := range passed {
		list = append(list, route{http.MethodGet, api.Prefix + what})
	}
	return list
}

func problemOf(t *testing.T, w *httptest.ResponseRecorder) api.Problem {
	t.Helper()
	var p api.Problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Kind != "Problem" || p.Code != w.Code {
		t.Errorf("not a problem of code %d: %s, %v", w.Code, w.Body, err)
	}
	return p
}

// A page of another site in the same browser, which sends the cookie, gets no answer from any route,
// and neither does a name that was made to lead here.
func TestForeignPages(t *testing.T) {
	s := newServed(t)
	s.enter()
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	host := func(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }
	foreign := map[string]func(*http.Request){
		"cross-site": header("Sec-Fetch-Site", "cross-site"), "same-site": header("Sec-Fetch-Site", "same-site"), "typed": header("Sec-Fetch-Site", "none"),
		"origin": header("Origin", "http://evil.example"), "null": header("Origin", "null"), "port": header("Origin", "http://127.0.0.1:80"), "tls": header("Origin", "https://127.0.0.1:9259"),
	}
	for _, name := range []string{"evil.example", "evil.example:9259", "127.0.0.1", "127.0.0.1:80", "localhost", "LOCALHOST:9259", "localhost.:9259", "127.0.0.1.evil.example:9259", "x127.0.0.1:9259", "[::1]", "[::]:9259", "0.0.0.0:9259", "127.1:9259", ""} {
		foreign["host "+name] = host(name)
	}
	for _, route := range routes() {
		for name, change := range foreign {
			if w := s.do(route.method, route.path, "{}", change); w.Code != http.StatusForbidden || len(w.Header().Values("Access-Control-Allow-Origin")) > 0 {
				t.Errorf("%s of %s: %d %s", route.path, name, w.Code, w.Body)
			}
		}
	}
	for name, change := range foreign {
		if strings.HasPrefix(name, "host ") && s.do(http.MethodGet, "/", "", change).Code != http.StatusForbidden {
			t.Errorf("the page is served to %s", name)
		}
	}
	if n := s.asked.Load(); n > 0 {
		t.Errorf("the daemon was asked %d times", n)
	}
	for _, name := range []string{"127.0.0.1:9259", "localhost:9259", "[::1]:9259"} {
		if w := s.do(http.MethodGet, api.Prefix+"summary", "", host(name)); w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

// A question is posted as JSON by the page itself.
func TestQuestions(t *testing.T) {
	s := newServed(t)
	s.enter()
	same := func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-origin") }
	if w := s.do(http.MethodPost, api.Prefix+"what-if", `{"change":"drain n1"}`, same); w.Code != http.StatusOK || w.Body.String() != `{"change":"drain n1"}` {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for _, kind := range []string{"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonp"} {
		if w := s.do(http.MethodPost, api.Prefix+"what-if", "{}", func(r *http.Request) { r.Header.Set("Content-Type", kind) }); w.Code != http.StatusUnsupportedMediaType {
			t.Errorf("%q: %d %s", kind, w.Code, w.Body)
		}
	}
	if w := s.do(http.MethodGet, api.Prefix+"what-if", "", nil); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", w.Code)
	}
	if w := s.do(http.MethodPost, api.Prefix+"what-if", strings.Repeat(" ", mostQuestion+1), nil); w.Code != http.StatusBadRequest {
		t.Errorf("a large question: %d", w.Code)
	}
}

// Only what is on the list is passed on, only as GET, and with its parameters.
func TestPaths(t *testing.T) {
	s := newServed(t)
	s.enter()
	for _, what := range passed {
		if w := s.do(http.MethodGet, api.Prefix+what+"?a=b&c=%2F", "", nil); w.Body.String() != what+"?a=b&c=%2F" || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %s %v", what, w.Body, w.Header())
		}
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodHead, http.MethodOptions} {
			if w := s.do(method, api.Prefix+what, "{}", nil); w.Code != http.StatusMethodNotAllowed {
				t.Errorf("%s %s: %d", method, what, w.Code)
			}
		}
	}
	asked := s.asked.Load()
	for _, path := range []string{"metrics", "", "summary/", "why/all/x", "../../metrics", "..%2fmetrics", "summary%00", "Summary", "/summary", "fit"} {
		if w := s.do(http.MethodGet, api.Prefix+path, "", nil); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	for _, path := range []string{"/metrics", "/healthz", "/berth/v1", "/assets/page.js", "/../server.go", "/index.html/x"} {
		if w := s.do(http.MethodGet, path, "", nil); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	if s.asked.Load() != asked {
		t.Error("the daemon was asked")
	}
}

// Each answer, whatever it is, tells the browser to load nothing from elsewhere and to keep nothing.
func TestHeaders(t *testing.T) {
	s := newServed(t)
	s.enter()
	want := map[string]string{"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
		"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store"}
	for _, path := range []string{"/", "/nothing", "/start", api.Prefix + "summary", api.Prefix + "nothing"} {
		got := s.do(http.MethodGet, path, "", nil).Header()
		for _, name := range slices.Sorted(maps.Keys(want)) {
			if got.Get(name) != want[name] {
				t.Errorf("%s: %s: %q", path, name, got.Get(name))
			}
		}
	}
	shell := s.do(http.MethodGet, "/", "", nil).Body.String()
	if strings.Contains(shell, "<style") || strings.Contains(shell, "://") || strings.Count(shell, "<script") != strings.Count(shell, "<script type=\"module\" src=\"page.js\"></script>") {
		t.Errorf("the page has code of its own, or loads something from elsewhere: %s", shell)
	}
}

// What the daemon refuses is told as it says it, and as a Problem where the library refuses before it.
func TestRefusals(t *testing.T) {
	s := newServed(t)
	s.enter()
	for _, tt := range []struct {
		code         int
		body, reason string
		message      string
	}{
		{401, `{"kind":"Status","message":"Unauthorized"}`, "Unauthorized", "log in anew"},
		{403, `forbidden: User "ann" cannot get path "/berth/v1/summary"`, "Forbidden", `cannot get path "/berth/v1/summary". Whoever may give rights can run: kubectl create clusterrolebinding`},
		{429, `{"kind":"Problem","code":429,"reason":"TooManyRequests","message":"ask again"}`, api.TooMany, "ask again"},
		{501, `{"kind":"Problem","code":501,"reason":"NotImplemented","message":"hosted"}`, api.Unsupported, "hosted"},
		{503, `{"kind":"Problem","code":503,"reason":"NotLeading","message":"berth-2 does","leader":"berth-2"}`, api.NotLeading, "berth-2 does"},
		{502, "<html>", api.Failed, "<html>"},
	} {
		s.reply = func(string, map[string][]string) *http.Response { return reply(tt.code, "x", tt.body) }
		w := s.do(http.MethodGet, api.Prefix+"summary", "", nil)
		if p := problemOf(t, w); w.Code != tt.code || p.Reason != tt.reason || !strings.Contains(p.Message, tt.message) {
			t.Errorf("%d: %d %+v", tt.code, w.Code, p)
		}
	}
}

// An answer that is larger than may be passed on once it is decoded, or that breaks off, is a Problem
// that names the path: no part of an answer is shown as if it were the whole.
func TestAnswersAreWhole(t *testing.T) {
	s := newServed(t)
	s.enter()
	most, more := zipped(t, mostAnswer), zipped(t, mostAnswer+1)
	const tooLong = "/berth/v1/nodes: the answer has more than 64 MiB, which is the most that this page passes on"
	for _, tt := range []struct {
		coding  string
		body    io.Reader
		size    int // of the answer that is passed on; 0: none is
		code    int
		message string
	}{
		{"", io.LimitReader(endless{}, mostAnswer), mostAnswer, http.StatusOK, ""},
		{"", endless{}, 0, http.StatusInternalServerError, tooLong},
		{"", io.MultiReader(strings.NewReader(`{"names":[`), iotest.ErrReader(io.ErrUnexpectedEOF)), 0, http.StatusBadGateway, "/berth/v1/nodes: the answer broke off: unexpected EOF"},
		{"gzip", bytes.NewReader(most), len(most), http.StatusOK, ""},
		{"gzip", bytes.NewReader(more), 0, http.StatusInternalServerError, tooLong},
		{"gzip", bytes.NewReader(most[:len(most)-9]), 0, http.StatusBadGateway, "/berth/v1/nodes: the answer broke off: unexpected EOF"},
		{"gzip", repeated(zipped(t, 0)), 0, http.StatusInternalServerError, tooLong},
		{"br", strings.NewReader("x"), 0, http.StatusBadGateway, `/berth/v1/nodes: the answer broke off: it is in the coding "br", which nobody asked for`},
	} {
		s.reply = func(string, map[string][]string) *http.Response {
			r := reply(http.StatusOK, "application/json", "")
			r.Body = io.NopCloser(tt.body)
			if tt.coding != "" {
				r.Header.Set("Content-Encoding", tt.coding)
			}
			return r
		}
		w := s.do(http.MethodGet, api.Prefix+"nodes", "", nil)
		if w.Code != tt.code {
			t.Errorf("%q: %d instead of %d, %d bytes", tt.coding, w.Code, tt.code, w.Body.Len())
		} else if tt.code == http.StatusOK {
			if w.Body.Len() != tt.size || w.Header().Get("Content-Encoding") != tt.coding {
				t.Errorf("%q: %d bytes, %v", tt.coding, w.Body.Len(), w.Header())
			}
		} else if p := problemOf(t, w); p.Message != tt.message || w.Header().Get("Content-Encoding") != "" {
			t.Errorf("%q: %d %+v", tt.coding, w.Code, p)
		}
	}
}

// zipped returns so many zero bytes in gzip.
func zipped(t *testing.T, size int64) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.CopyN(w, endless{}, size); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// repeated returns a text that begins again without end.
func repeated(text []byte) io.Reader {
	many := bytes.Repeat(text, 1+(mostAnswer+1)/len(text))
	return bytes.NewReader(many)
}

// endless is an answer without an end.
type endless struct{}

// Read is for io.Reader.
func (endless) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// All that the page loads is at most 60 kB in gzip, and each of its files names no other server.
func TestAssetsAreSmall(t *testing.T) {
	files, err := assets.ReadDir("assets")
	if err != nil || len(files) < 5 {
		t.Fatal(err, files)
	}
	var all bytes.Buffer
	for _, f := range files {
		text, err := assets.ReadFile("assets/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		w := gzip.NewWriter(&all)
		_, _ = w.Write(text)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		for _, address := range regexp.MustCompile(`(https?:)?//[a-z0-9-]+\.[a-z0-9.-]+`).FindAllString(string(text), -1) {
			if !strings.HasPrefix(address, "http://www.w3.org") && f.Name() != "licenses.txt" { // the names of XML
				t.Errorf("%s names %s", f.Name(), address)
			}
		}
	}
	if all.Len() > 60_000 {
		t.Errorf("the files of the page are %d bytes in gzip", all.Len())
	}
}
