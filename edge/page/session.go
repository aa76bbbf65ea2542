package page

import (
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// codeTime is how long a one-time code may be used.
const codeTime = time.Minute

// session knows who may read data: browsers that came with a one-time code, and have a cookie since.
type session struct {
	now    func() time.Time
	cookie string // its name: cookies are shared by all ports of a host
	token  string // its value

	mu    sync.Mutex
	code  string // "": none may be used
	until time.Time
}

func newSession(now func() time.Time, port int) *session {
	return &session{now: now, cookie: fmt.Sprintf("berth-%d", port), token: rand.Text()}
}

// newCode returns a new one-time code. It replaces the code before.
func (s *session) newCode() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.code, s.until = rand.Text(), s.now().Add(codeTime)
	return s.code
}

// use reports whether the code is right and not too late, and lets nobody use it again.
func (s *session) use(code string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.code == "" || subtle.ConstantTimeCompare([]byte(code), []byte(s.code)) != 1 {
		return false
	}
	s.code = ""
	return s.now().Before(s.until)
}

// start gives the cookie to whoever has the code, and leads to the page.
func (s *session) start(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method != http.MethodGet:
		http.Error(w, "Only GET is served.", http.StatusMethodNotAllowed)
	case !s.use(r.URL.Query().Get("once")):
		http.Error(w, "This address was used already, is older than a minute, or is of another \"berth view\". Start \"berth view\" again and open the address that it prints.", http.StatusForbidden)
	default:
		http.SetCookie(w, &http.Cookie{Name: s.cookie, Value: s.token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode}) // #nosec G124 -- loopback has no TLS
		http.Redirect(w, r, "/", http.StatusSeeOther)
	}
}

// holds reports whether a request has the cookie.
func (s *session) holds(r *http.Request) bool {
	c, err := r.Cookie(s.cookie)
	return err == nil && subtle.ConstantTimeCompare([]byte(c.Value), []byte(s.token)) == 1
}
