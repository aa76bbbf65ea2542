package tool

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/edge/api"
	"github.com/berth-scheduler/berth/edge/records"
	"github.com/berth-scheduler/berth/edge/shadow"
)

// hostile is a text that a page must not take for anything but text.
const hostile = `<img src=x onerror="document.title='broken'"> ` + "\u202egnp.exe \U0001F4A5 "

// largeTable is a table of nodes of one zone.
func largeTable(n int) *api.NodeTable {
	t := &api.NodeTable{Head: api.Head{APIVersion: api.Version, Kind: "NodeTable"}, Revision: "a-1", Time: time.Now(), Whole: true,
		Names: make([]string, n), Ready: make([]bool, n), Cordoned: make([]bool, n),
		Zones: api.Values[string]{Values: []string{hostile}, Of: make([]int, n)}, Taints: api.Values[[]api.Taint]{Values: [][]api.Taint{{{Key: hostile, Effect: "NoSchedule"}}}, Of: make([]int, n)}}
	amounts := api.Amounts{Allocatable: make([]int64, n), Requested: make([]int64, n)}
	for i := range n {
		t.Names[i], t.Ready[i] = fmt.Sprintf("node-%05d", i), true
		amounts.Allocatable[i], amounts.Requested[i] = 1000, int64(i%1000)
	}
	t.Resources = map[v1.ResourceName]api.Amounts{v1.ResourceCPU: amounts, v1.ResourceMemory: amounts, v1.ResourcePods: amounts}
	return t
}

// The page says in words how it stands, while a daemon goes through what may happen to one, and
// takes no name for more than a name.
func TestPageStates(t *testing.T) {
	var mode atomic.Value
	mode.Store("live")
	long := hostile + strings.Repeat("x", 253)
	daemon := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		said := func(code int, body string) {
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		}
		switch mode.Load() {
		case "forbidden":
			said(http.StatusForbidden, `User "ann" cannot get path "/berth/v1/summary"`)
			return
		case "unauthorized":
			said(http.StatusUnauthorized, "Unauthorized")
			return
		case "notLeading":
			said(http.StatusServiceUnavailable, `{"kind":"Problem","code":503,"reason":"NotLeading","message":"this daemon does not lead: berth-2 does","leader":"berth-2"}`)
			return
		case "slow":
			for strings.HasSuffix(r.URL.Path, "/summary") && mode.Load() == "slow" {
				select {
				case <-r.Context().Done():
					return
				case <-time.After(20 * time.Millisecond):
				}
			}
		case "busy":
			if !strings.HasSuffix(r.URL.Path, "/watch") {
				said(http.StatusTooManyRequests, `{"kind":"Problem","code":429,"reason":"TooManyRequests","message":"ask again"}`)
				return
			}
		}
		switch strings.TrimPrefix(r.URL.Path, api.Prefix) {
		case "watch":
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "id: a-1\n: alive\n\n")
			_ = http.NewResponseController(w).Flush()
			for mode.Load() == "live" || mode.Load() == "slow" || mode.Load() == "empty" {
				select {
				case <-r.Context().Done():
					return
				case <-time.After(20 * time.Millisecond):
				}
			}
		case "capabilities":
			_ = json.NewEncoder(w).Encode(api.Capabilities{Time: time.Now(), Identity: "berth-1", Leads: true})
		case "nodes":
			_ = json.NewEncoder(w).Encode(largeTable(10_000))
		case "summary":
			if mode.Load() == "older" {
				_, _ = io.WriteString(w, `{"kind":"Summary"}`)
				return
			}
			if mode.Load() == "empty" {
				_ = json.NewEncoder(w).Encode(api.Summary{Time: time.Now(), Nodes: 3, Shadow: true, Hosted: true, LastDecision: &records.Record{Time: time.Now(), Type: records.Attempt, Pod: "shop/cart", Attempt: 1, Result: "Unschedulable", Message: "no room"}, Rates: records.Rates{Attempts: map[string]int{}}, Blocking: []records.Blocking{}})
				return
			}
			_ = json.NewEncoder(w).Encode(api.Summary{Time: time.Now(), Nodes: 10_000, Queue: api.Queue{Unschedulable: 1}, Rates: records.Rates{Attempts: map[string]int{}}, Blocking: []records.Blocking{{Plugin: "P", Reason: long, Pods: 1}}})
		case "shadow":
			_ = json.NewEncoder(w).Encode(api.ShadowAnswer{Time: time.Now(), ShadowStatus: api.ShadowStatus{Placeable: 2, Choices: []api.Choices{{Result: "same", Profile: "default-scheduler", Pods: 40}, {Result: "infeasible", Plugin: "TaintToleration", Profile: "default-scheduler", Pods: 1}}},
				Differences: []shadow.Record{{Time: time.Now(), Pod: "shop/cart", Node: "tainted", BerthNode: "free", Result: shadow.Infeasible, Reasons: []string{"TaintToleration: " + long}}}})
		case "pending":
			_ = json.NewEncoder(w).Encode(api.PendingList{Pods: []api.PendingPod{{Pod: "shop/cart", Place: "unschedulable", Since: time.Now(), Message: long}}, Total: 1})
		case "why":
			said(http.StatusNotImplemented, `{"kind":"Problem","code":501,"reason":"NotImplemented","message":"this daemon cannot say why"}`)
		case "records":
			_, _ = io.WriteString(w, `{"kind":"RecordList","records":[{"time":"2026-01-01T00:00:00Z","type":"Attempt","pod":"shop/cart","attempt":1,"result":"Unschedulable","message":"no room"}],"more":false,"log":{}}`)
		default:
			said(http.StatusNotFound, `{"kind":"Problem","code":404,"reason":"NotFound","message":"there is no such thing"}`)
		}
	}))
	defer daemon.Close()
	defer daemon.CloseClientConnections()
	c := startChromium(t)
	c.size(1000, 800, "light")
	v := view(t, "--daemon", daemon.URL, "--insecure-skip-tls-verify", "--kubeconfig", kubeconfigFor(t, daemon.URL))
	c.give(v)
	connection := func(begin string) {
		t.Helper()
		c.until(fmt.Sprintf(`document.querySelector("[aria-label=Connection]").innerText.startsWith(%q)`, begin))
	}
	alert := func(part string) {
		t.Helper()
		c.until(fmt.Sprintf(`[...document.querySelectorAll("[role=alert]")].some(a => a.innerText.includes(%q))`, part))
	}
	c.open(v.base + "/#/nodes")
	connection("Live")
	c.until(`document.querySelector("[aria-label=Map]")?.innerText === "10,000 nodes shown"`)
	c.picture("large")
	if n := c.eval(`document.querySelectorAll("*").length`); len(n) > 3 {
		t.Errorf("10,000 nodes are %s elements", n)
	}
	for _, hash := range []string{"#/nodes?by=cpu", "#/", "#/queue"} {
		c.route(hash)
		c.until(`document.body.innerText.includes("onerror")`)
		if n := c.eval(`document.querySelectorAll("img").length`); n != "0" || c.eval("document.title") == "broken" {
			t.Errorf("%s: a name became %s pictures", hash, n)
		}
	}
	mode.Store("empty")
	c.route("#/nodes")
	c.route("#/")
	for _, text := range []string{"3 nodes with 0 pods. No pod waits.", " ago: shop/cart, attempt 1: unschedulable: no room", "This is a shadow", "has hosted plugins", "2 pods wait that Berth would place", "a node that Berth would reject: TaintToleration: <img"} {
		c.until(fmt.Sprintf(`document.querySelector("main").innerText.includes(%q)`, text))
	}
	for _, name := range []string{"Choices", "Differences"} {
		if c.named("table", name) != 1 {
			t.Errorf("there is no table %q", name)
		}
	}
	mode.Store("slow")
	c.route("#/nodes")
	c.eval(`location.hash = "#/"`)
	c.until(`document.querySelector("main").innerText.includes("Loading the overview …") && document.querySelector("main").getAttribute("aria-busy") === "true"`)
	mode.Store("live")
	c.until(`document.querySelector("main").innerText.includes("the most frequent cause")`)
	c.route("#/pod/shop/cart")
	alert("this daemon cannot say why")
	c.until(`document.body.innerText.includes("no room")`)
	c.route("#/node/nothing")
	alert("there is no such thing")
	mode.Store("busy")
	c.route("#/queue")
	alert("Asking again in")
	mode.Store("notLeading")
	connection("Not leading: berth-2")
	mode.Store("forbidden")
	c.route("#/")
	alert("kubectl create clusterrolebinding")
	connection("Stale since")
	c.until(`/The scheduler refuses to say what changes. What is shown is \d+ s old\./.test(document.querySelector("main").innerText) && getComputedStyle(document.querySelector("main")).filter.includes("grayscale")`)
	mode.Store("unauthorized") // a token that was revoked while the page is open
	c.route("#/queue")
	alert("does not accept the credentials of the kubeconfig")
	mode.Store("older")
	c.route("#/decisions")
	c.route("#/")
	alert("This view failed")
	mode.Store("live")
	c.route("#/queue")
	connection("Live")
}
