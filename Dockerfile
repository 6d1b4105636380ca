# The image is the static binary that `make build` leaves in bin/; `make up`
# does both. No base image, so no registry is needed.
FROM scratch
COPY bin/server /server
# The generated keys; a volume on it takes over the owner.
COPY --chown=65532:65532 deploy/data /var/lib/ckscale
# All addresses of the container's own network, without TLS: who can reach that
# is decided by how the port is published, and by who else is on the network.
# With CKSCALE_TLS_CERT and CKSCALE_TLS_KEY TLS is served all the same.
ENV CKSCALE_ADDR=0.0.0.0:8080 CKSCALE_INSECURE=true CKSCALE_DATA_DIR=/var/lib/ckscale
USER 65532:65532
EXPOSE 8080
HEALTHCHECK --interval=5s --timeout=5s --start-period=30s CMD ["/server", "healthcheck"]
ENTRYPOINT ["/server"]
