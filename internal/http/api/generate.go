// Package api is generated from api/openapi.yaml; nothing in it is edited by
// hand.
package api

//go:generate go tool -modfile=../../../tools/go.mod oapi-codegen -config config.yaml ../../../api/openapi.yaml
