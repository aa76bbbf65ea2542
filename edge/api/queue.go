package api

import (
	"cmp"
	"net/http"
	"regexp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/edge/records"
)

// RecordList is the answer of records: the newest that match, the oldest first.
type RecordList struct {
	Head
	Records []records.Record `json:"records"`
	// More: there are older ones that match.
	More bool         `json:"more"`
	Log  records.Size `json:"log"`
}

func (h *handler) records(r *http.Request) (any, error) {
	p := paramsOf(r, "pod", "node", "reason", "since", "until", "limit")
	q := p.query(h.Now(), h.veilOf(r))
	q.Most = p.limit()
	if p.err != nil {
		return nil, p.err
	}
	size, found := h.Recorder.Size(), h.Recorder.Find(q)
	if q.Pod != "" && found.Len() == 0 {
		if err := h.known(r, q.Pod); err != nil {
			found.End()
			return nil, err
		}
	}
	frame := RecordList{Head: head("RecordList"), Records: []records.Record{}, More: found.More, Log: size}
	return &list{frame, func(yield func(any) bool) {
		for record := range found.All() {
			if !yield(record) {
				return
			}
		}
	}, found.End}, nil
}

// known is an error where the scheduler has never heard of the pod, as far as it can
// tell.
func (h *handler) known(r *http.Request, pod string) error {
	known, profiles := false, []string(nil)
	err := h.look(r.Context(), func(m *machine.Machine) { known, profiles = m.Knows(podName(pod)), m.Profiles() })
	if err != nil || known {
		return err
	}
	return problem(http.StatusNotFound, NotFound,
		"pod %s: there is no record of it: it is not there, or is gone for longer than records are kept, or its schedulerName is none of %q", pod, profiles)
}

// PendingPod is a pod that waits to be scheduled.
type PendingPod struct {
	Pod        string     `json:"pod"`
	Workload   string     `json:"workload,omitempty"`
	UID        types.UID  `json:"uid"`
	Place      string     `json:"place"`
	Since      time.Time  `json:"since"`
	Until      *time.Time `json:"until,omitempty"`
	Created    *time.Time `json:"created,omitempty"`
	Attempts   int        `json:"attempts"`
	RejectedBy []string   `json:"rejectedBy,omitempty"`
	PendingBy  []string   `json:"pendingBy,omitempty"`
	// FailedBy is what failed in the last attempt, if it ended in an error: "binding", a plugin, or "error".
	FailedBy      string `json:"failedBy,omitempty"`
	NominatedNode string `json:"nominatedNode,omitempty"`
	// Message is that of the last attempt.
	Message string `json:"message,omitempty"`
}

// PendingList is the answer of pending: pods that wait, those that wait longest first.
type PendingList struct {
	Head
	Pods []PendingPod `json:"pods"`
	// Total is how many there are that match; the list may be shorter.
	Total int `json:"total"`
}

func (h *handler) pending(r *http.Request) (any, error) {
	p := paramsOf(r, "namespace", "workload", "place", "reason", "limit")
	limit, namespace, workload, reason := p.limit(), p.values.Get("namespace"), p.values.Get("workload"), p.values.Get("reason")
	places := p.some("place", "active", "backoff", "error backoff", "unschedulable", "gated", "in flight", otherPlace)
	if slices.Contains(places, otherPlace) && len(places) > 1 {
		p.fail("place", otherPlace+" goes with no other place")
	}
	if p.err != nil {
		return nil, p.err
	}
	if slices.Contains(places, otherPlace) {
		return h.otherPods(namespace, reason, limit), nil
	}
	waiting, err := h.waiting(r)
	if err != nil {
		return nil, err
	}
	waiting = slices.DeleteFunc(waiting, func(w waitingPod) bool {
		return namespace != "" && w.Pod.Namespace != namespace || workload != "" && workloadOf(w.Pod) != workload || len(places) > 0 && !slices.Contains(places, w.Place.String())
	})
	uids := make(map[string]bool, len(waiting))
	for i := range waiting {
		uids[string(waiting[i].Pod.UID)] = true
	}
	last := h.Recorder.Lasts(uids)
	if reason != "" {
		waiting = slices.DeleteFunc(waiting, func(w waitingPod) bool {
			l, _ := last.Of(string(w.Pod.UID))
			return !l.Has(reason)
		})
	}
	slices.SortFunc(waiting, func(a, b waitingPod) int {
		return cmp.Or(a.began().Compare(b.began()), cmp.Compare(a.Pod.Key(), b.Pod.Key()))
	})
	frame := PendingList{Head: head("PendingList"), Pods: []PendingPod{}, Total: len(waiting)}
	shown := slices.Clone(waiting[:min(limit, len(waiting))]) // the others go
	return &list{frame, func(yield func(any) bool) {
		for i := range shown {
			if !yield(shown[i].pending(last)) {
				return
			}
		}
	}, last.End}, nil
}

// pending is the pod with what its last attempt said.
func (w *waitingPod) pending(last *records.Lasts) PendingPod {
	l, _ := last.Of(string(w.Pod.UID))
	return PendingPod{Pod: w.Pod.Key(), Workload: workloadOf(w.Pod), UID: w.Pod.UID, Place: w.Place.String(), Since: w.Since.UTC(), Attempts: w.Attempts,
		RejectedBy: w.RejectedBy, PendingBy: w.PendingBy, NominatedNode: w.NominatedNode, Until: utc(w.until), Created: utc(w.Pod.Created), Message: l.Message,
		FailedBy: l.FailedBy()}
}

// began returns since when the pod waits: each attempt begins its place anew.
func (w *waitingPod) began() time.Time {
	if w.Pod.Created.IsZero() {
		return w.Since
	}
	return w.Pod.Created
}

func utc(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// waitingPod is a pod in the queue.
type waitingPod struct {
	queue.State
	until time.Time
}

// waiting copies the queue, pods in flight included.
func (h *handler) waiting(r *http.Request) (pods []waitingPod, err error) {
	err = h.look(r.Context(), func(m *machine.Machine) {
		q := m.Queue()
		for e := range q.Entries() {
			pods = append(pods, waitingPod{e.State(), q.StayEnd(e)})
		}
	})
	return pods, err
}

// Summary is the answer of summary.
type Summary struct {
	Head
	Time   time.Time `json:"time"`
	Leader string    `json:"leader,omitempty"`
	// Shadow tells that the daemon compares its choices and schedules nothing.
	Shadow bool `json:"shadow,omitempty"`
	// Hosted tells that the daemon has hosted plugins, and so does not answer why and
	// why/all.
	Hosted bool  `json:"hosted,omitempty"`
	Queue  Queue `json:"queue"`
	// Nodes, and pods that take room on them; Assumed are those of them that the API
	// does not show there yet.
	Nodes   int `json:"nodes"`
	Pods    int `json:"pods"`
	Assumed int `json:"assumed"`
	// Oldest is since when the pod waits that was in the queue first.
	Oldest *time.Time `json:"oldest,omitempty"`
	// Rates count what happened in the last minute.
	Rates records.Rates `json:"rates"`
	// LastDecision is the attempt that was made last; nil if there is no record of one.
	LastDecision *records.Record `json:"lastDecision,omitempty"`
	// Blocking ranks what blocks the pods that wait, by their last attempts.
	Blocking []records.Blocking `json:"blocking"`
	// Others counts pods without a node that ask for other schedulers, which may or may not be
	// there; nil if there are none.
	Others *records.Others `json:"otherSchedulers,omitempty"`
	// Refused is the configuration that was refused last, if none was taken over since.
	Refused *Refusal     `json:"refused,omitempty"`
	Log     records.Size `json:"log"`
}

// Queue is how many pods are where.
type Queue struct {
	Active        int `json:"active"`
	Backoff       int `json:"backoff"`
	ErrorBackoff  int `json:"errorBackoff"`
	Unschedulable int `json:"unschedulable"`
	Gated         int `json:"gated"`
	InFlight      int `json:"inFlight"`
}

// rateTime is how long back rates count.
const rateTime = time.Minute

// mostBlocking bounds the ranking of what blocks.
const mostBlocking = 50

func (h *handler) summary(r *http.Request) (any, error) {
	if p := paramsOf(r); p.err != nil {
		return nil, p.err
	}
	s := Summary{Head: head("Summary"), Time: h.Now().UTC(), Leader: h.Leader(), Shadow: h.Shadow, Hosted: h.Hosted}
	waiting, workloads := map[string]bool{}, map[string]string{}
	err := h.look(r.Context(), func(m *machine.Machine) {
		q, t := m.Queue(), m.Table()
		s.Queue, s.Nodes, s.Pods, s.Assumed = Queue(q.Counts()), t.Live(), t.PlacedPods(), m.Assumed()
		for e := range q.Entries() {
			if e.Place() != queue.InFlight {
				waiting[string(e.Pod.UID)] = true
				workloads[string(e.Pod.UID)] = workloadOf(e.Pod)
			}
			if first := e.Pod.Created; !first.IsZero() && (s.Oldest == nil || first.Before(*s.Oldest)) {
				s.Oldest = utc(first)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	last := h.Recorder.Overview(waiting, s.Time, rateTime)
	defer last.End()
	s.Blocking = records.Rank(last.All(), func(r *records.Record) string { return workloads[r.UID] })
	s.Blocking = s.Blocking[:min(mostBlocking, len(s.Blocking))]
	s.Rates, s.LastDecision, s.Log = last.Rates, last.LastAttempt, h.Recorder.Size()
	s.Others = h.Recorder.Others()
	s.Refused = h.Status(r.Context()).Configuration.Refused
	h.hideReason(r.Context(), s.Refused)
	return s, nil
}

// generated is the part of a name that the API server or a controller makes up: of a
// ReplicaSet's name what follows its Deployment's, of a pod's what follows its workload's.
var generated = regexp.MustCompile(`-([bcdfghjklmnpqrstvwxz2456789]{5,10}|[0-9]+)$`)

// workloadOf names the workload of a pod, as far as the scheduler knows it: a Deployment
// by its ReplicaSet, and a Job or another that it does not watch by the pod's name.
func workloadOf(p *object.Pod) string {
	switch c := p.Controller; c.Kind {
	case object.ReplicaSet:
		return p.Namespace + "/" + generated.ReplaceAllString(c.Name, "")
	case object.NoSelectorOwner:
		return p.Namespace + "/" + generated.ReplaceAllString(p.Name, "")
	default:
		return p.Namespace + "/" + c.Name
	}
}
