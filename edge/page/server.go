package page

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/berth-scheduler/berth/edge/api"
)

// Port is the port that a server takes where it is free and no other is asked for.
const Port = 9259

// Data opens an answer of a daemon: what is a path below api.Prefix. The header may have
// Accept-Encoding and Last-Event-ID. A refusal is an answer, with its status; the error says why
// there is no answer, as an api.Problem or in words.
type Data func(ctx context.Context, what string, query map[string][]string, header http.Header) (*http.Response, error)

// Ask answers a question that the page posts as JSON, in JSON. Its error is about the question,
// unless it is an api.Problem.
type Ask func(ctx context.Context, question []byte) ([]byte, error)

// Options are what a Server serves.
type Options struct {
	Data Data
	// Asks are the questions that are posted, by their paths below api.Prefix.
	Asks map[string]Ask
	// Replays is set if Data also answers the paths of a record.
	Replays bool
	// Now is the time; nil: that of the system.
	Now func() time.Time
}

// Server serves the page and the data. Any goroutine may call it.
type Server struct {
	options Options
	port    int
	session *session
	stream  *hub
	asking  chan struct{} // who has sent to it answers a question
	foreign *http.CrossOriginProtection
}

// passed are the paths of Data that are passed on, besides watch.
var passed = []string{"status", "capabilities", "records", "pending", "summary", "history", "nodes", "node", "groups", "group", "quotas", "find", "shadow", "why", "why/all", "blockers"}

// ofRecords are the paths that Data has of a record alone.
var ofRecords = []string{"replay", "compare"}

// Listen listens on loopback at the port. 0 stands for Port, or any free port if another process
// has that.
func Listen(port int) (net.Listener, error) {
	if port != 0 {
		return net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
	}
	l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", Port))
	if err != nil {
		l, err = net.Listen("tcp4", "127.0.0.1:0")
	}
	return l, err
}

// NewServer returns a new server for the port of 127.0.0.1 at which it listens.
func NewServer(o Options, port int) *Server {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Server{options: o, port: port, session: newSession(o.Now, port), stream: newHub(o.Data, o.Now), asking: make(chan struct{}, 1), foreign: http.NewCrossOriginProtection()}
}

// Address returns an address that opens the page once, within codeTime. Addresses before it open
// nothing any more.
func (s *Server) Address() string {
	return fmt.Sprintf("http://127.0.0.1:%d/start?once=%s", s.port, s.session.newCode())
}

// readTime bounds the time for the header of a request, and idleTime that between two of a connection.
const (
	readTime = 10 * time.Second
	idleTime = 2 * time.Minute
)

// Serve answers until the context ends.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{Handler: s, ReadHeaderTimeout: readTime, IdleTimeout: idleTime, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	defer s.stream.close()
	if err := server.Serve(l); ctx.Err() == nil {
		return err
	}
	return nil
}

// policy lets the page load and ask nothing but what this server has.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// ServeHTTP is for http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	switch {
	case !s.isHost(r.Host):
		http.Error(w, fmt.Sprintf("This page is at 127.0.0.1:%d, not at the host that was asked for.", s.port), http.StatusForbidden)
	case r.URL.Path == "/start":
		s.session.start(w, r)
	case strings.HasPrefix(r.URL.Path, api.Prefix):
		s.answer(w, r, strings.TrimPrefix(r.URL.Path, api.Prefix))
	default:
		asset(w, r)
	}
}

// isHost reports whether a request's host is exactly one of the names of this server.
func (s *Server) isHost(host string) bool {
	name, ours := strings.CutSuffix(host, fmt.Sprintf(":%d", s.port))
	return ours && slices.Contains([]string{"127.0.0.1", "localhost", "[::1]"}, name)
}

// answer answers a request for data.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, what string) {
	site, origin := r.Header.Get("Sec-Fetch-Site"), r.Header.Get("Origin")
	switch ask := s.options.Asks[what]; {
	case site != "" && site != "same-origin", origin != "" && origin != "http://"+r.Host:
		refuse(w, http.StatusForbidden, "Forbidden", "only the page itself may ask for data")
	case !s.session.holds(r):
		refuse(w, http.StatusUnauthorized, "NoSession", "this browser has not opened the address that \"berth view\" printed; start \"berth view\" again and open the new one")
	case ask != nil:
		s.ask(w, r, ask)
	case slices.Contains(ofRecords, what) && !s.options.Replays:
		refuse(w, http.StatusNotFound, api.NotFound, "this is no record; \"berth view --record DIR\" shows one, and with --config NEW.yaml compares two configurations")
	case what != "watch" && !slices.Contains(passed, what) && !slices.Contains(ofRecords, what):
		refuse(w, http.StatusNotFound, api.NotFound, fmt.Sprintf("%s is not served here", r.URL.Path))
	case r.Method != http.MethodGet:
		refuse(w, http.StatusMethodNotAllowed, api.BadRequest, r.Method+": only GET is served")
	case what == "watch":
		s.stream.serve(w, r)
	default:
		s.pass(w, r, what)
	}
}

// mostQuestion bounds a question that is posted, with objects to be tried.
const mostQuestion = 4 << 20

// ask answers a question that was posted. One is answered at a time.
func (s *Server) ask(w http.ResponseWriter, r *http.Request, ask Ask) {
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	switch {
	case r.Method != http.MethodPost:
		refuse(w, http.StatusMethodNotAllowed, api.BadRequest, r.Method+": only POST is served")
		return
	case s.foreign.Check(r) != nil:
		refuse(w, http.StatusForbidden, "Forbidden", "only the page itself may ask")
		return
	case strings.TrimSpace(kind) != "application/json":
		refuse(w, http.StatusUnsupportedMediaType, api.BadRequest, "the question must be of the type application/json")
		return
	}
	question, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostQuestion))
	if err != nil {
		refuse(w, http.StatusBadRequest, api.BadRequest, "the question: "+err.Error())
		return
	}
	select {
	case s.asking <- struct{}{}:
		defer func() { <-s.asking }()
	case <-r.Context().Done():
		return
	}
	answer, err := ask(r.Context(), question)
	var p *api.Problem
	switch {
	case errors.As(err, &p):
		refuse(w, p.Code, p.Reason, p.Message)
	case err != nil:
		refuse(w, http.StatusBadRequest, api.BadRequest, err.Error())
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(answer) // who asked is gone
	}
}

// Problem returns a new problem with the status of HTTP, a reason for programs, and a message.
func Problem(code int, reason, message string) *api.Problem {
	return &api.Problem{Head: api.Head{APIVersion: api.Version, Kind: "Problem"}, Code: code, Reason: reason, Message: message}
}

func refuse(w http.ResponseWriter, code int, reason, message string) {
	writeProblem(w, Problem(code, reason, message))
}

func writeProblem(w http.ResponseWriter, p *api.Problem) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(p.Code)
	_ = json.NewEncoder(w).Encode(p) // who asked is gone
}
