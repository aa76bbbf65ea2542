package api

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/why"
)

// A pod whose binding was refused is not said to fit: the answer leads with what the last
// attempt ended in, and a header tells programs. An attempt that found no node agrees with an
// answer that finds none.
func TestWhyOfARefusedBinding(t *testing.T) {
	f := stuck(t)
	f.pod("denied", "1")
	f.step(machine.ScheduleOne{})
	f.step(machine.BindReply{UID: "denied", Result: machine.BindRefused, Err: errors.New("policy says no")})
	var a why.Answer
	if f.get("why?pod=shop/denied", &a); a.Verdict != why.WouldBePlaced || a.Observed == nil || a.Observed.From != "record" || a.Observed.Agrees || !strings.Contains(a.Observed.Message, "policy says no") {
		t.Errorf("%s, observed %+v", a.Verdict, a.Observed)
	}
	reply, err := http.Get(f.server.URL + Prefix + "why?pod=shop/denied&output=text")
	if err != nil {
		t.Fatal(err)
	}
	reply.Body.Close()
	if got := reply.Header.Get(DisagreesHeader); got != "true" {
		t.Errorf("header %s: %q", DisagreesHeader, got)
	}
	if _, body := f.get("why?pod=shop/denied&output=text", nil); !strings.HasPrefix(body, "shop/denied waits, and the cluster said last: ") {
		t.Errorf("text: %s", body)
	}
	a = why.Answer{}
	if f.get("why?pod=shop/big", &a); a.Observed == nil || !a.Observed.Agrees {
		t.Errorf("a pod without a node: observed %+v", a.Observed)
	}
}

// A list is about the pods that are asked for, and says so as a WhyList.
func TestWhyAllOfSome(t *testing.T) {
	f := stuck(t)
	f.pods["shop/small"].Spec.NodeName = "n1"
	for query, want := range map[string]int{"": 1, "&namespace=shop": 1, "&namespace=other": 0, "&selector=" + url.QueryEscape("app in (web)"): 0, "&namespace=shop&workload=deploy/web": 0} {
		var l why.List
		if code, body := f.get("why/all?kind=WhyList"+query, &l); code != 200 || l.Kind != "WhyList" || l.Pods != want || l.Pending != nil {
			t.Errorf("%s: %d, want %d pods: %s", query, code, want, body)
		}
	}
	for query, want := range map[string]string{
		"selector=%3D":                    "parameter selector==: ",
		"workload=deploy/web":             "parameter workload=deploy/web: must be KIND/NAME, and goes with a namespace",
		"workload=pod/web&namespace=shop": "parameter workload=pod/web: must be KIND/NAME",
		"kind=List":                       "parameter kind=List: must be one of WhyAll, WhyList",
	} {
		if code, body := f.get("why/all?"+query, nil); code != 400 || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s", query, code, body)
		}
	}
}
