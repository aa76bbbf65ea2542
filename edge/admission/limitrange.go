package admission

import (
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helper "k8s.io/component-helpers/resource"
)

// defaultLimitRange sets the API server's defaults: of a container's limit the most, of
// its request the limit, and else the least.
func defaultLimitRange(l *v1.LimitRange) {
	for i := range l.Spec.Limits {
		item := &l.Spec.Limits[i]
		if item.Type != v1.LimitTypeContainer {
			continue
		}
		item.Default = merge(item.Default, item.Max)
		item.DefaultRequest = merge(merge(item.DefaultRequest, item.Default), item.Min)
	}
}

// merge returns a copy of list with the amounts of more for resources that list lacks.
func merge(list, more v1.ResourceList) v1.ResourceList {
	all := maps.Clone(list)
	for name, q := range more { // any order: each by itself
		if _, has := all[name]; !has {
			if all == nil {
				all = v1.ResourceList{}
			}
			all[name] = q
		}
	}
	return all
}

// setDefaults sets the requests and limits that containers lack and the range has a
// default for.
func setDefaults(l *v1.LimitRange, p *v1.Pod) {
	for _, item := range l.Spec.Limits {
		if item.Type != v1.LimitTypeContainer {
			continue
		}
		for _, list := range [][]v1.Container{p.Spec.Containers, p.Spec.InitContainers} {
			for i := range list {
				r := &list[i].Resources
				r.Limits, r.Requests = merge(r.Limits, item.Default), merge(r.Requests, item.DefaultRequest)
			}
		}
	}
}

// violation returns, in words, the first limit of l that the pod violates, "" if it violates none.
func violation(l *v1.LimitRange, p *v1.Pod) string {
	for i := range l.Spec.Limits {
		switch item := &l.Spec.Limits[i]; item.Type {
		case v1.LimitTypeContainer:
			for _, list := range [][]v1.Container{p.Spec.Containers, p.Spec.InitContainers} {
				for j := range list {
					if why := breach(item, list[j].Resources.Requests, list[j].Resources.Limits); why != "" {
						return fmt.Sprintf("container %s has %s", list[j].Name, why)
					}
				}
			}
		case v1.LimitTypePod:
			own := helper.PodResourcesOptions{ExcludeOverhead: true}
			if why := breach(item, helper.PodRequests(p, own), helper.PodLimits(p, own)); why != "" {
				return "the pod has " + why
			}
		}
	}
	return ""
}

// breach returns what of the requests and limits the item does not allow, "" if it
// allows all.
func breach(item *v1.LimitRangeItem, requests, limits v1.ResourceList) string {
	for _, name := range slices.Sorted(maps.Keys(item.Min)) {
		least := item.Min[name]
		if q, has := requests[name]; !has || q.Cmp(least) < 0 {
			return fmt.Sprintf("%s, and at least %s is asked for", amount("request", name, requests), least.String())
		}
		if q, has := limits[name]; has && q.Cmp(least) < 0 {
			return fmt.Sprintf("%s, and at least %s is asked for", amount("limit", name, limits), least.String())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(item.Max)) {
		most := item.Max[name]
		if q, has := limits[name]; !has || q.Cmp(most) > 0 {
			return fmt.Sprintf("%s, and at most %s is allowed", amount("limit", name, limits), most.String())
		}
		if q, has := requests[name]; has && q.Cmp(most) > 0 {
			return fmt.Sprintf("%s, and at most %s is allowed", amount("request", name, requests), most.String())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(item.MaxLimitRequestRatio)) {
		most := item.MaxLimitRequestRatio[name]
		request, limit := requests[name], limits[name]
		if request.IsZero() || limit.IsZero() || ratio(limit, request) > most.AsApproximateFloat64() {
			return fmt.Sprintf("%s and %s, and a limit of at most %s times the request is allowed",
				amount("request", name, requests), amount("limit", name, limits), most.String())
		}
	}
	return ""
}

// ratio returns limit / request. request must not be zero.
func ratio(limit, request resource.Quantity) float64 {
	return limit.AsApproximateFloat64() / request.AsApproximateFloat64()
}

// amount names an amount in words: "a cpu limit of 4", "no cpu limit".
func amount(what string, name v1.ResourceName, list v1.ResourceList) string {
	q, has := list[name]
	if !has {
		return fmt.Sprintf("no %s %s", name, what)
	}
	return fmt.Sprintf("a %s %s of %s", name, what, q.String())
}
