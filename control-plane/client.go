package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"time"
)

// client asks the API server the few things that the supervisor needs to know.
type client struct {
	http       *http.Client
	url, token string
}

func newClient(url string, c *credentials) *client {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.caPEM)
	return &client{
		http: &http.Client{
			Timeout: 5 * time.Second,
			Transport: &http.Transport{
				TLSClientConfig: &tls.Config{RootCAs: roots},
				// A kept connection would outlive the server that it belongs to.
				DisableKeepAlives: true,
			},
		},
		url: url, token: c.token,
	}
}

// get returns nil if the API server answers the path with 200.
func (c *client) get(ctx context.Context, path string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+path, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode == http.StatusOK {
		return nil
	}
	body, _ := io.ReadAll(io.LimitReader(response.Body, 4096))
	return fmt.Errorf("%s: %s: %s", path, response.Status, body)
}
