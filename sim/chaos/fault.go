package chaos

import (
	"fmt"
	"hash/fnv"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The classes of requests that a fault can be on.
const (
	bindRequest   = "bind"
	evictRequest  = "evict"
	writeRequest  = "write" // of a claim, of a volume or a device, or of a volume
	statusRequest = "status"
	readRequest   = "read"
	leaseRequest  = "lease"
	eventRequest  = "event"
	listRequest   = "list"
	watchRequest  = "watch"
	extendRequest = "extend" // to the extender, except for bindings
)

var classes = []string{bindRequest, evictRequest, statusRequest, readRequest, leaseRequest, eventRequest, listRequest, watchRequest, writeRequest, extendRequest}

// classOf is the class of a request.
func classOf(r *http.Request) string {
	path := r.URL.Path
	switch {
	case strings.HasSuffix(path, "/binding") || path == "/bind":
		return bindRequest
	case r.URL.Host == extenderHost:
		return extendRequest
	case strings.Contains(path, "/leases"):
		return leaseRequest
	case strings.Contains(path, "/events"):
		return eventRequest
	case writesClaim(r.Method, path):
		return writeRequest
	case strings.HasSuffix(path, "/status"):
		return statusRequest
	case r.Method == http.MethodDelete:
		return evictRequest
	case strings.Contains(r.URL.RawQuery, "watch="):
		return watchRequest
	case strings.Contains(path, "/namespaces/"):
		return readRequest
	}
	return listRequest
}

// What a fault does to a request, or to a watch.
const (
	slowRequest = "slow"       // it comes late
	slowReply   = "slow-reply" // it is served, its reply comes late
	unreachable = "unreachable"
	lostRequest = "lost-request"
	lostReply   = "lost-reply" // it is served, its connection ends
	hangRequest = "hang"       // half-open: nobody answers
	hangReply   = "hang-reply" // it is served, and nobody answers
	cutBody     = "cut-body"   // the reply ends early
	refused     = "refuse"     // an error of code=, which is not served
	failReply   = "fail-reply" // it is served, and an error of code= answered
	lie         = "lie"        // the extender answers nonsense, or what is not so
	freezeWatch = "freeze"     // watches of kind= show nothing
	lagWatch    = "lag"        // watches of kind= show all so much later
	staleList   = "stale"      // lists that may be stale lag by that many changes
	panicStep   = "panic"      // steps of the scheduler panic
	crashAt     = "crash-at"   // the process ends before such a request is served
	crashAfter  = "crash-after"
)

var faultKinds = []string{slowRequest, slowReply, unreachable, lostRequest, lostReply, hangRequest, hangReply, cutBody,
	refused, failReply, lie, freezeWatch, lagWatch, staleList, panicStep, crashAt, crashAfter}

// fault is one fault: what happens to which requests of which replica, when.
type fault struct {
	id      int
	does    string
	replica string // "": any; leader: whoever holds the lease
	on      string // a class of requests; "": all
	kind    string // of objects, as a watch or a path names them; "": all
	from    time.Time
	to      time.Time
	share   int // of such requests, in percent
	by      time.Duration
	code    int
	nth     int // the only such request that it happens to; 0: any
}

// parseFault reads a directive: what it does, then key=value.
func parseFault(words []string, now time.Time) (*fault, error) {
	if len(words) == 0 || !slices.Contains(faultKinds, words[0]) {
		return nil, fmt.Errorf("want one of %s", strings.Join(faultKinds, ", "))
	}
	f := &fault{does: words[0], from: now, to: now.Add(10 * time.Second), share: 100, by: time.Second, code: http.StatusServiceUnavailable}
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		if err := f.set(key, value); err != nil {
			return nil, fmt.Errorf("%s: %w", w, err)
		}
	}
	return f, nil
}

func (f *fault) set(key, value string) (err error) {
	switch key {
	case "replica":
		f.replica = value
	case "on":
		if f.on = value; !slices.Contains(classes, value) {
			return fmt.Errorf("want one of %s", strings.Join(classes, ", "))
		}
	case "kind":
		f.kind = value
	case "for":
		var d time.Duration
		d, err = time.ParseDuration(value)
		f.to = f.from.Add(d)
	case "share":
		f.share, err = strconv.Atoi(strings.TrimSuffix(value, "%"))
	case "by":
		f.by, err = time.ParseDuration(value)
		if n, number := strconv.Atoi(value); number == nil { // of changes
			f.by, err = time.Duration(n), nil
		}
	case "code":
		f.code, err = strconv.Atoi(value)
	case "nth":
		f.nth, err = strconv.Atoi(value)
	default:
		return fmt.Errorf("no such word")
	}
	return err
}

// faults are those of a run. They are for any goroutine.
type faults struct {
	seed uint64
	mu   sync.Mutex
	list []*fault
	hits map[int]int    // by fault: requests that it was asked about
	seen map[string]int // requests so far, by what they say
	hit  map[string]int // by what a fault does: how often it happened
	over bool
}

func newFaults(seed uint64) *faults {
	return &faults{seed: seed, hits: map[int]int{}, seen: map[string]int{}, hit: map[string]int{}}
}

func (fs *faults) add(f *fault) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f.id = len(fs.list)
	fs.list = append(fs.list, f)
}

// happened counts what happened.
func (fs *faults) happened(what string) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.hit[what]++
}

// heal ends all faults.
func (fs *faults) heal() {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.over = true
}

// shown is when the last watch that was held up has shown all.
func (fs *faults) shown() (last time.Time) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for _, f := range fs.list {
		at := f.to
		if f.does == lagWatch {
			at = at.Add(f.by)
		}
		if (f.does == lagWatch || f.does == freezeWatch) && at.After(last) {
			last = at
		}
	}
	return last.Add(time.Second)
}

// draw is a number that depends on the seed and on what happens for the how
// manieth time, and on nothing else.
func (fs *faults) draw(what string) uint64 {
	fs.mu.Lock()
	fs.seen[what]++
	n := fs.seen[what]
	fs.mu.Unlock()
	return mix(fs.seed, what, n)
}

func mix(parts ...any) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, parts...)
	x := h.Sum64() // its low bits change little with the last byte
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// of is the fault, if any, that is to happen now to something of a replica.
func (fs *faults) of(replica string, leads bool, drawn uint64, match func(*fault) bool) *fault {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	now := time.Now()
	for _, f := range fs.list {
		if fs.over || now.Before(f.from) || !now.Before(f.to) || !match(f) {
			continue
		}
		if f.replica != "" && f.replica != replica && (f.replica != "leader" || !leads) {
			continue
		}
		fs.hits[f.id]++
		if f.nth > 0 && f.nth != fs.hits[f.id] || mix(drawn, f.id)%100 >= uint64(f.share) {
			continue
		}
		fs.hit[f.does]++
		return f
	}
	return nil
}

// ofKind tells whether a request with the path is of the fault's kind.
func (f *fault) ofKind(path string) bool {
	if f.kind == "" {
		return true
	}
	resource, group, _ := strings.Cut(f.kind, ".")
	after, ok := strings.CutPrefix(path, "/api/v1/")
	if group != "" {
		_, after, _ = strings.Cut(strings.TrimPrefix(path, "/apis/"+group+"/"), "/") // the version
		ok = strings.HasPrefix(path, "/apis/"+group+"/")
	}
	words := strings.Split(after, "/")
	if len(words) > 2 && words[0] == "namespaces" {
		words = words[2:]
	}
	return ok && words[0] == resource
}

// onRequest tells whether the fault is about such a request.
func (f *fault) onRequest(class string) bool {
	switch f.does {
	case freezeWatch, lagWatch, staleList, panicStep:
		return false
	case lie:
		return class == extendRequest
	case cutBody:
		return (f.on == "" || f.on == class) && (class == listRequest || class == readRequest || class == watchRequest || class == extendRequest)
	}
	return f.on == class || f.on == "" && class != watchRequest
}
