package api

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/machine"
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
	q := p.query(h.Now())
	q.Most = p.limit()
	if p.err != nil {
		return nil, p.err
	}
	list := RecordList{Head: head("RecordList"), Log: h.Recorder.Size()}
	list.Records, list.More = h.Recorder.Find(q)
	if q.Pod != "" && len(list.Records) == 0 {
		if err := h.known(r, q.Pod); err != nil {
			return nil, err
		}
	}
	return list, nil
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
	Pod           string     `json:"pod"`
	UID           types.UID  `json:"uid"`
	Place         string     `json:"place"`
	Since         time.Time  `json:"since"`
	Until         *time.Time `json:"until,omitempty"`
	Attempts      int        `json:"attempts"`
	RejectedBy    []string   `json:"rejectedBy,omitempty"`
	PendingBy     []string   `json:"pendingBy,omitempty"`
	NominatedNode string     `json:"nominatedNode,omitempty"`
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
	p := paramsOf(r, "namespace", "place", "reason", "limit")
	limit, namespace, reason := p.limit(), p.values.Get("namespace"), p.values.Get("reason")
	place := p.one("place", "", "active", "backoff", "error backoff", "unschedulable", "gated", "in flight")
	if p.err != nil {
		return nil, p.err
	}
	waiting, err := h.waiting(r)
	if err != nil {
		return nil, err
	}
	last := h.Recorder.Lasts()
	list := PendingList{Head: head("PendingList"), Pods: []PendingPod{}}
	for i := range waiting {
		w := &waiting[i]
		l, tried := last[string(w.Pod.UID)]
		switch {
		case namespace != "" && w.Pod.Namespace != namespace, place != "" && w.Place.String() != place, reason != "" && !l.Has(reason):
			continue
		}
		list.Total++
		out := PendingPod{Pod: w.Pod.Key(), UID: w.Pod.UID, Place: w.Place.String(), Since: w.Since.UTC(), Attempts: w.Attempts,
			RejectedBy: w.RejectedBy, PendingBy: w.PendingBy, NominatedNode: w.NominatedNode, Until: utc(w.until)}
		if tried {
			out.Message = l.Message
		}
		list.Pods = append(list.Pods, out)
	}
	slices.SortFunc(list.Pods, func(a, b PendingPod) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Pod, b.Pod))
	})
	list.Pods = list.Pods[:min(limit, len(list.Pods))]
	return list, nil
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
	// Blocking ranks what blocks the pods that wait, by their last attempts. A pod may
	// count for several reasons.
	Blocking []records.Blocking `json:"blocking"`
	Log      records.Size       `json:"log"`
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
	waiting := map[string]bool{}
	err := h.look(r.Context(), func(m *machine.Machine) {
		q, t := m.Queue(), m.Table()
		s.Queue, s.Nodes, s.Pods, s.Assumed = Queue(q.Counts()), t.Live(), t.Placements(), m.Assumed()
		for e := range q.Entries() {
			if e.Place() != queue.InFlight {
				waiting[string(e.Pod.UID)] = true
			}
			if first := e.Pod.Created; !first.IsZero() && (s.Oldest == nil || first.Before(*s.Oldest)) {
				s.Oldest = utc(first)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	last := h.Recorder.Lasts()
	var open []records.Record
	for uid := range waiting { // any order: they are counted
		if record, tried := last[uid]; tried {
			open = append(open, record)
		}
	}
	s.Blocking = records.Rank(open)
	s.Blocking = s.Blocking[:min(mostBlocking, len(s.Blocking))]
	s.Rates, s.Log = h.Recorder.Rates(s.Time, rateTime), h.Recorder.Size()
	return s, nil
}
