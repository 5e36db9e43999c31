//! Single requests beside an informer's list and watch: with its credentials, to its server.

use http::header::USER_AGENT;
use http::{HeaderValue, Request, StatusCode};

use super::Core;
use crate::transport::{Response, TransportError};

impl Core {
    /// Sends a request. If the answer is 401, credentials are read again, and it is sent once more.
    pub(crate) async fn ask(&self, mut request: Request<Vec<u8>>) -> Result<Response, TransportError> {
        let agent: &HeaderValue = &self.settings.user_agent;
        request.headers_mut().insert(USER_AGENT, agent.clone());
        let transport = self.server.transport();
        let response = transport.send(request.clone()).await?;
        if response.head.status != StatusCode::UNAUTHORIZED {
            return Ok(response);
        }
        transport.refresh_credentials().await?;
        transport.send(request).await
    }
}
