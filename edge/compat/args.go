package compat

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	configv1 "k8s.io/kube-scheduler/config/v1"
)

// Args decodes the arguments of hosted plugins.
type Args struct{ decoder runtime.Decoder }

// NewArgs returns a decoder that knows the types that plugins added to a scheme.
func NewArgs(add []func(*runtime.Scheme) error) (Args, error) {
	scheme := runtime.NewScheme()
	for _, f := range add {
		if err := f(scheme); err != nil {
			return Args{}, fmt.Errorf("adding types for the arguments of plugins: %w", err)
		}
	}
	return Args{serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder(internalOf(scheme)...)}, nil
}

// internalOf lists, for each group of the scheme, the version that factories get.
func internalOf(scheme *runtime.Scheme) []schema.GroupVersion {
	var list []schema.GroupVersion
	for _, gv := range scheme.PrioritizedVersionsAllGroups() {
		internal := schema.GroupVersion{Group: gv.Group, Version: runtime.APIVersionInternal}
		if !scheme.IsVersionRegistered(internal) {
			internal = gv
		}
		list = append(list, internal)
	}
	return list
}

// Decode returns the arguments as the factory gets them: the type that the scheme's
// defaults and conversions make of them, or, without a registered type, as v1.36
// *runtime.Unknown; nil where there are none.
func (a Args) Decode(plugin string, raw any) (runtime.Object, error) {
	body, given := raw.(json.RawMessage)
	gvk := configv1.SchemeGroupVersion.WithKind(plugin + "Args")
	if _, _, err := a.decoder.Decode(nil, &gvk, nil); runtime.IsNotRegisteredError(err) {
		return a.unregistered(plugin, body)
	}
	if !given {
		body = nil
	}
	object, got, err := a.decoder.Decode(body, &gvk, nil)
	if err != nil {
		return nil, fmt.Errorf("decoding args for plugin %s: %w", plugin, err)
	}
	if got != nil && got.GroupKind() != gvk.GroupKind() {
		return nil, fmt.Errorf("args for plugin %s were not of type %s, got %s", plugin, gvk.GroupKind(), got.GroupKind())
	}
	return object, nil
}

// unregistered are arguments without a registered type of the plugin's name.
func (a Args) unregistered(_ string, body json.RawMessage) (runtime.Object, error) {
	if len(body) == 0 || string(body) == "null" {
		return nil, nil
	}
	return &runtime.Unknown{Raw: body, ContentType: runtime.ContentTypeJSON}, nil
}
