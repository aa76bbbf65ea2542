package tool

import (
	"strings"
	"testing"
)

// What keeps devices that are there from a claim is told, and the claim can ask for less.
func TestWhyNearDevices(t *testing.T) {
	const class = "---\napiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: gpu}\nspec: {selectors: [{cel: {expression: device.driver == \"gpu.example.com\"}}]}\n---\n"
	slice := func(slices, more, devices string) string {
		return "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: s}\nspec: {nodeName: a, driver: gpu.example.com, pool: {name: a, generation: 1, resourceSliceCount: " + slices + "}" + more + ", devices: [" + devices + "]}\n---\n"
	}
	claim := func(request, constraints string) string {
		return "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: k, namespace: default, uid: u}\nspec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu, " + request + "}}]" + constraints + "}}\n---\n"
	}
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i}], resourceClaims: [{name: x, resourceClaimName: k}]}\n"
	const two = "{name: d1, attributes: {model: {string: A}}}, {name: d2, attributes: {model: {string: B}}}"
	for _, test := range []struct{ why, in, told, first string }{
		{"a selector that none passes", slice("1", "", two) + claim("selectors: [{cel: {expression: 'device.attributes[\"gpu.example.com\"].model == \"C\"'}}]", ""),
			"that its selectors take, and none does (the largest node has 2 of the class)", "1. drop the selector "},
		{"a constraint", slice("1", "", two) + claim("count: 2", ", constraints: [{matchAttribute: gpu.example.com/model}]"),
			"no node here has all that at once", "1. lower the devices of class gpu that claim k wants from 2 to 1"},
		{"a taint of devices", slice("1", "", "{name: d1, taints: [{key: broken, effect: NoSchedule}]}") + claim("count: 1", ""),
			"devices have the taint broken:NoSchedule, which is not tolerated", "1. have claim k tolerate the taint broken:NoSchedule of devices"},
		{"slices that are missing", slice("2", "", two) + claim("count: 1", ""),
			"pool a of gpu.example.com has 1 of its 2 slices: its driver has to publish the rest first", ""},
		{"counters that devices share", slice("2", "", "{name: d1, consumesCounters: [{counterSet: set, counters: {memory: {value: 4Gi}}}]}, {name: d2, consumesCounters: [{counterSet: set, counters: {memory: {value: 4Gi}}}]}") +
			strings.Replace(strings.Replace(slice("2", ", sharedCounters: [{name: set, counters: {memory: {value: 4Gi}}}]", ""), "name: s}", "name: counters}", 1), ", devices: []", "", 1) + claim("count: 2", ""),
			"devices of pool a share counters, so that not all can be had at once", "1. lower the devices of class gpu that claim k wants from 2 to 1"},
	} {
		_, out, errs := berth(nodeYAML+class+test.in+pod, "why", "-f", "-", "p")
		if !strings.Contains(out, test.told) || !strings.Contains(out, "\n  "+test.first) {
			t.Errorf("%s: want %q and %q: %s\n%s", test.why, test.told, test.first, errs, out)
		}
	}
}

// A claim that is made of a template is changed in the template, and the pod is made anew.
func TestWhyChangesClaimTemplate(t *testing.T) {
	in := nodeYAML + "---\napiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: gpu}\nspec: {}\n---\n" +
		"apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: s}\nspec: {nodeName: a, driver: gpu.example.com, pool: {name: a, generation: 1, resourceSliceCount: 1}, devices: [{name: d}]}\n---\n" +
		"apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: p-x, namespace: default, uid: u, ownerReferences: [{apiVersion: v1, kind: Pod, name: p, uid: up, controller: true}]}\nspec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu, count: 3}}]}}\n---\n" +
		"apiVersion: v1\nkind: Pod\nmetadata: {name: p, uid: up}\nspec: {containers: [{name: c, image: i}], resourceClaims: [{name: x, resourceClaimTemplateName: tmpl}]}\nstatus: {resourceClaimStatuses: [{name: x, resourceClaimName: p-x}]}\n"
	_, out, errs := berth(in, "why", "-f", "-", "p")
	for _, want := range []string{"kubectl get resourceclaimtemplate tmpl -n default -o json |", `"path":"/spec/spec/devices/requests/0/exactly/count","value":1`, "kubectl get pod p -n default -o json | kubectl replace --force -f -"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q: %s\n%s", want, errs, out)
		}
	}
}
