package freevolumes_test

import (
	"fmt"

	"github.com/berth-scheduler/berth/core/index/freevolumes"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// Of the volumes of a class two are local to n1, one can be used everywhere, and one is kept for a
// claim. Each list begins with the smallest.
func Example() {
	t := table.New()
	set := func(name string, gib int64, host, claim string) {
		v := &object.PersistentVolume{Meta: object.Meta{Kind: object.PersistentVolumes, Name: name}, Class: "fast", Bytes: gib << 30}
		if host != "" {
			v.Pin = &object.LabelPin{Key: "host", Values: []string{host}}
		}
		if claim != "" {
			v.Claim = &object.ClaimReference{Namespace: "default", Name: claim}
		}
		t.Objects().Set(v)
	}
	t.SetNode(&object.Node{Name: "n1", Labels: map[string]string{"host": "n1"}})
	t.SetNode(&object.Node{Name: "n2", Labels: map[string]string{"host": "n2"}})
	set("large", 100, "n1", "")
	set("small", 10, "n1", "")
	set("network", 50, "", "")
	set("kept", 20, "", "data")

	x := freevolumes.Of(t)
	free := x.InClass("fast")
	show := func(what string, list []*object.PersistentVolume) {
		fmt.Print(what, ":")
		for _, v := range list {
			fmt.Print(" ", v.Name)
		}
		fmt.Println()
	}
	fmt.Println("pinned by", free.Keys())
	show("on n1", free.Pinned(freevolumes.Pin{Key: "host", Value: "n1"}))
	show("on n2", free.Pinned(freevolumes.Pin{Key: "host", Value: "n2"}))
	show("everywhere", free.Unpinned())
	for v := range x.KeptFor("default", "data") {
		fmt.Println("for the claim data:", v.Name)
	}

	// Output:
	// pinned by [host]
	// on n1: small large
	// on n2:
	// everywhere: network
	// for the claim data: kept
}
