//! The calls that members and external participants share: topics, writers and readers.

/// Methods of a participant, in terms of [`Host`](super::host::Host), `find` and `stopped`.
macro_rules! participant_calls {
    () => {
        /// Returns the topic with this name, declared or created at run time, if it has this type.
        ///
        /// # Errors
        /// Fails with [`DdsError::PreconditionNotMet`] if there is no such topic, or if the topic
        /// has another type (DDS's inconsistent topic) or is closed to this participant.
        pub fn topic<T: TypeSupport>(&self, name: &str) -> Result<Topic<T>, DdsError> {
            let (index, generation, description) = self.find(name)?;
            check_type::<T>(&description)?;
            Ok(Topic { index, generation, name: name.to_owned(), sample: PhantomData })
        }

        /// Returns the topic with this name, for programs that do not know its type: their samples
        /// are bytes of CDR: [`Lent::cdr`](crate::Lent::cdr) and [`DataWriter::write_cdr`].
        ///
        /// # Errors
        /// Fails like `topic`, except that the type is not checked.
        pub fn untyped_topic(&self, name: &str) -> Result<Topic<crate::Octets>, DdsError> {
            let (index, generation, _) = self.find(name)?;
            Ok(Topic { index, generation, name: name.to_owned(), sample: PhantomData })
        }

        /// Waits for a topic that another participant creates, like DDS's `find_topic`.
        ///
        /// # Errors
        /// Fails with [`DdsError::Timeout`], and like `topic`.
        pub fn find_topic<T: TypeSupport>(
            &self,
            name: &str,
            timeout: Duration,
        ) -> Result<Topic<T>, DdsError> {
            $crate::participant::upcall::check_not_in_listener("find_topic")?;
            let until = $crate::time::until(timeout);
            if !self.shared.known.await_named(name, until, || self.stopped().is_some()) {
                return Err(self.stopped().map_or(DdsError::Timeout(timeout), DdsError::from));
            }
            self.topic(name)
        }

        /// Returns the topics: the declared ones, then those created at run time and not deleted.
        /// For an external participant, topics that are closed to it are included.
        #[must_use]
        pub fn topics(&self) -> Vec<TopicDescription> {
            self.shared.known.lock().directory.topics().cloned().collect()
        }

        /// Creates a writer on a topic. The samples of an external participant are a client's
        /// lines, which a member copies into its own slots; those in flight are bounded by 4096
        /// samples or 4 MiB per topic, not by the topic's window.
        ///
        /// # Errors
        /// [`DdsError`]: policies that are refused, or this participant does not publish there.
        pub fn create_datawriter<T: TypeSupport>(
            &self,
            topic: &Topic<T>,
            qos: WriterQos,
        ) -> Result<DataWriter<T>, DdsError> {
            $crate::participant::entities::create_writer(self, topic, qos)
        }

        /// Creates a reader on a topic. On a topic that keeps samples, a reader that requests them
        /// receives those first, each once.
        ///
        /// # Errors
        /// [`DdsError`]: policies that are refused, or this participant does not subscribe there.
        pub fn create_datareader<T: TypeSupport>(
            &self,
            topic: &Topic<T>,
            qos: ReaderQos,
        ) -> Result<DataReader<T>, DdsError> {
            $crate::participant::entities::create_reader(self, topic, qos)
        }

        /// Creates a reader with a listener, which misses nothing. An external participant calls it
        /// from its receiving thread, and a slow listener there delays no other participant.
        ///
        /// # Errors
        /// Fails like `create_datareader`.
        pub fn create_datareader_with_listener<T: TypeSupport>(
            &self,
            topic: &Topic<T>,
            qos: ReaderQos,
            listener: impl DataReaderListener<T> + 'static,
        ) -> Result<DataReader<T>, DdsError> {
            $crate::participant::entities::create_reader_with_listener(self, topic, qos, listener)
        }

        /// Creates a reader that begins at a position in the topic's order
        /// ([`SampleInfo::ordinal`](crate::SampleInfo::ordinal)), counted from 1. It first receives
        /// the messages that are still in the log of this member, or of the member to which an
        /// external participant is connected, regardless of what the topic keeps in memory and of
        /// the reader's `durability`; then those written from then on, each once and in order.
        /// Messages that are no longer in the log are reported as lost. A member reads its log in a
        /// separate thread: the group waits neither for that thread nor for the disk.
        ///
        /// A writer that announced itself before that message is unknown, and is assumed to offer
        /// all that the level provides, until the reader has caught up.
        ///
        /// # Errors
        /// Fails like `create_datareader`, and with [`DdsError::PreconditionNotMet`] if the topic
        /// is not logged or does not have that many messages.
        pub fn create_datareader_from<T: TypeSupport>(
            &self,
            topic: &Topic<T>,
            qos: ReaderQos,
            first: u64,
        ) -> Result<DataReader<T>, DdsError> {
            $crate::participant::entities::create_reader_from(self, topic, qos, first)
        }
    };
}

pub(super) use participant_calls;
