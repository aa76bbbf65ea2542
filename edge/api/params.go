package api

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berth-scheduler/berth/edge/records"
)

// Bounds of what is answered at once.
const (
	usualLimit = 500
	mostLimit  = 10_000
)

// params reads the parameters of a question. The first that is wrong is the error.
type params struct {
	values url.Values
	err    error
}

// paramsOf takes the parameters that a question may have.
func paramsOf(r *http.Request, known ...string) *params {
	p := &params{}
	p.values, p.err = url.ParseQuery(r.URL.RawQuery)
	for _, name := range slices.Sorted(maps.Keys(p.values)) {
		switch {
		case !slices.Contains(known, name):
			p.fail(name, "is not known; there are "+strings.Join(known, ", "))
		case len(p.values[name]) > 1:
			p.fail(name, "is given twice")
		}
	}
	if p.err != nil {
		p.err = problem(http.StatusBadRequest, BadRequest, "%s", p.err)
	}
	return p
}

func (p *params) fail(name, why string) {
	if p.err == nil {
		p.err = problem(http.StatusBadRequest, BadRequest, "parameter %s=%s: %s", name, p.values.Get(name), why)
	}
}

// pod is namespace/name; without a namespace the pod is in "default".
func (p *params) pod(name string) string {
	pod := p.values.Get(name)
	if pod == "" {
		return ""
	}
	namespace, plain, qualified := strings.Cut(pod, "/")
	switch {
	case !qualified:
		return "default/" + pod
	case namespace == "" || plain == "" || strings.Contains(plain, "/"):
		p.fail(name, "must be NAMESPACE/NAME")
	}
	return pod
}

// time is an instant, or how long ago it was.
func (p *params) time(name string, now time.Time) time.Time {
	value := p.values.Get(name)
	if value == "" {
		return time.Time{}
	}
	if ago, err := time.ParseDuration(value); err == nil && ago >= 0 {
		return now.Add(-ago)
	}
	t, err := time.Parse(time.RFC3339Nano, value)
	if err != nil {
		p.fail(name, "must be a time such as 2026-01-31T12:00:00Z, or how long ago, such as 10m")
	}
	return t
}

func (p *params) limit() int {
	value := p.values.Get("limit")
	if value == "" {
		return usualLimit
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > mostLimit {
		p.fail("limit", fmt.Sprintf("must be a number from 1 to %d", mostLimit))
	}
	return n
}

func (p *params) one(name, otherwise string, of ...string) string {
	value := p.values.Get(name)
	if value == "" {
		return otherwise
	}
	if !slices.Contains(of, value) {
		p.fail(name, "must be one of "+strings.Join(of, ", "))
	}
	return value
}

// some reads values with commas between; none if there is no such parameter.
func (p *params) some(name string, of ...string) []string {
	value := p.values.Get(name)
	if value == "" {
		return nil
	}
	all := strings.Split(value, ",")
	if slices.ContainsFunc(all, func(one string) bool { return !slices.Contains(of, one) }) {
		p.fail(name, "must be one of "+strings.Join(of, ", "))
	}
	return all
}

// query reads what all questions about records have. Answers go through the veil.
func (p *params) query(now time.Time, v *veil) records.Query {
	return records.Query{Pod: p.pod("pod"), Node: p.values.Get("node"), Reason: p.values.Get("reason"), Since: p.time("since", now), Until: p.time("until", now), View: v.record}
}
