package compat

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	configv1 "k8s.io/kube-scheduler/config/v1"
)

// Args decodes the pluginConfig arguments of hosted plugins.
type Args struct {
	scheme  *runtime.Scheme
	decoder runtime.Decoder
}

// NewArgs returns a decoder that knows the types that the functions of add register in its scheme.
// It returns an error if one of them does. Decoding is strict: unknown fields are errors.
func NewArgs(add []func(*runtime.Scheme) error) (Args, error) {
	scheme := runtime.NewScheme()
	for _, f := range add {
		if err := f(scheme); err != nil {
			return Args{}, fmt.Errorf("adding types for the arguments of plugins: %w", err)
		}
	}
	codecs := serializer.NewCodecFactory(scheme, serializer.EnableStrict)
	return Args{scheme, codecs.UniversalDecoder(lentVersions(scheme)...)}, nil
}

// lentVersions returns the versions in which factories get their arguments: a group's
// internal version if it has one, else the version that the group prefers.
func lentVersions(scheme *runtime.Scheme) []schema.GroupVersion {
	var list []schema.GroupVersion
	seen := map[string]bool{}
	for _, gv := range scheme.PrioritizedVersionsAllGroups() {
		if seen[gv.Group] {
			continue
		}
		seen[gv.Group] = true
		if internal := (schema.GroupVersion{Group: gv.Group, Version: runtime.APIVersionInternal}); hasTypes(scheme, internal) {
			gv = internal
		}
		list = append(list, gv)
	}
	return list
}

// hasTypes reports whether any type is registered for the group and version.
func hasTypes(scheme *runtime.Scheme, gv schema.GroupVersion) bool {
	return len(scheme.KnownTypes(gv)) > 0
}

// Decode returns the plugin's arguments as its factory gets them, with the scheme's defaults and
// conversions. raw is JSON, or a value with RawArgs; anything else stands for no arguments, as null
// does. Their kind is the plugin's name with "Args" in kubescheduler.config.k8s.io/v1 or, if that
// is not registered, the kind that they name. If neither is registered, Decode returns
// *runtime.Unknown, as kube-scheduler does, or nil without arguments. Arguments of another kind are
// an error.
func (a Args) Decode(plugin string, raw any) (runtime.Object, error) {
	body, _ := raw.(json.RawMessage)
	if with, is := raw.(interface{ RawArgs() json.RawMessage }); is { // of a plugin of Berth's that has this name
		body = with.RawArgs()
	}
	if string(body) == "null" {
		body = nil
	}
	kind := configv1.SchemeGroupVersion.WithKind(plugin + "Args")
	if !a.scheme.Recognizes(kind) {
		named, err := kindOf(body)
		if err != nil {
			return nil, fmt.Errorf("decoding args for plugin %s: %w", plugin, err)
		}
		if !a.scheme.Recognizes(named) {
			if len(body) == 0 {
				return nil, nil
			}
			return &runtime.Unknown{Raw: body, ContentType: runtime.ContentTypeJSON}, nil
		}
		kind = named
	}
	object, got, err := a.decoder.Decode(body, &kind, nil)
	if err != nil {
		return nil, fmt.Errorf("decoding args for plugin %s: %w", plugin, err)
	}
	if got != nil && got.GroupKind() != kind.GroupKind() {
		return nil, fmt.Errorf("args for plugin %s were not of type %s, got %s", plugin, kind.GroupKind(), got.GroupKind())
	}
	return object, nil
}

// kindOf returns the kind that the arguments name by apiVersion and kind. It returns the zero kind
// if they name none or are no JSON object. It returns an error if the object does not parse.
func kindOf(body json.RawMessage) (schema.GroupVersionKind, error) {
	var named struct{ APIVersion, Kind string }
	if len(body) == 0 || body[0] != '{' {
		return schema.GroupVersionKind{}, nil
	}
	if err := json.Unmarshal(body, &named); err != nil {
		return schema.GroupVersionKind{}, err
	}
	return schema.FromAPIVersionAndKind(named.APIVersion, named.Kind), nil
}
