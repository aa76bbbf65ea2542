package compat

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	configv1 "k8s.io/kube-scheduler/config/v1"
)

// TypedArgs is the type of a plugin's arguments, as files have it.
type TypedArgs struct {
	metav1.TypeMeta `json:",inline"`
	Max             *int `json:"max,omitempty"`
}

// internalArgs is the type as the plugin wants it.
type internalArgs struct {
	metav1.TypeMeta
	Max int
}

func (a *TypedArgs) DeepCopyObject() runtime.Object    { c := *a; return &c }
func (a *internalArgs) DeepCopyObject() runtime.Object { c := *a; return &c }

// addTyped adds the versioned type, with a default, and the internal one.
func addTyped(s *runtime.Scheme) error {
	s.AddKnownTypeWithName(configv1.SchemeGroupVersion.WithKind("TypedArgs"), &TypedArgs{})
	internal := schema.GroupVersion{Group: configv1.GroupName, Version: runtime.APIVersionInternal}
	s.AddKnownTypeWithName(internal.WithKind("TypedArgs"), &internalArgs{})
	s.AddTypeDefaultingFunc(&TypedArgs{}, func(o any) {
		if a := o.(*TypedArgs); a.Max == nil {
			five := 5
			a.Max = &five
		}
	})
	return s.AddConversionFunc((*TypedArgs)(nil), (*internalArgs)(nil), func(a, b any, _ conversion.Scope) error {
		b.(*internalArgs).Max = *a.(*TypedArgs).Max
		return nil
	})
}

// Arguments of a registered type are defaulted, converted and strictly decoded; others
// are runtime.Unknown.
func TestArgsAreDecodedByTheirType(t *testing.T) {
	typed, err := NewArgs([]func(*runtime.Scheme) error{addTyped})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		plugin, raw string
		want        runtime.Object
		wantErr     string
	}{
		{"Typed", `{"max": 7}`, &internalArgs{Max: 7}, ""},
		{"Typed", `{}`, &internalArgs{Max: 5}, ""},
		{"Typed", ``, &internalArgs{Max: 5}, ""},
		{"Typed", `{"maxx": 7}`, nil, `decoding args for plugin Typed: strict decoding error: unknown field "maxx"`},
		{"Typed", `{"max": "seven"}`, nil, "decoding args for plugin Typed"},
		{"Typed", `{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "OtherArgs"}`, nil, "decoding args for plugin Typed"},
		{"Free", `{"a": 1}`, &runtime.Unknown{Raw: []byte(`{"a": 1}`), ContentType: runtime.ContentTypeJSON}, ""},
		{"Free", `{"apiVersion": "example.com/v1", "kind": "Any"}`, &runtime.Unknown{Raw: []byte(`{"apiVersion": "example.com/v1", "kind": "Any"}`), ContentType: runtime.ContentTypeJSON}, ""},
		{"Free", `{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "TypedArgs", "max": 8}`, &internalArgs{Max: 8}, ""},
		{"Free", `null`, nil, ""},
		{"Free", ``, nil, ""},
	} {
		var raw any
		if tc.raw != "" {
			raw = json.RawMessage(tc.raw)
		}
		got, err := typed.Decode(tc.plugin, raw)
		switch {
		case tc.wantErr != "":
			if err == nil || !strings.Contains(err.Error(), tc.wantErr) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s %s: got %v, want %s", tc.plugin, tc.raw, err, tc.wantErr)
			}
		case err != nil:
			t.Errorf("%s %s: %v", tc.plugin, tc.raw, err)
		default:
			if a, ok := got.(*internalArgs); ok {
				a.TypeMeta = metav1.TypeMeta{}
			}
			if !reflect.DeepEqual(got, tc.want) {
				t.Errorf("%s %s: got %#v", tc.plugin, tc.raw, got)
			}
		}
	}
}
