//! The list of traffic models, and everything that follows from a line in it.

/// Makes, from one line per model, the enum that a scenario reads. A line is a variant and the
/// module that has the parameters under the variant's name.
macro_rules! models {
    ($($(#[$doc:meta])* $model:ident($module:ident),)+) => {
        aqmlab_declare::registry! {
            /// A traffic model and its parameters.
            #[derive(Clone, Debug, PartialEq)]
            pub enum Model {
                $($(#[$doc])* $model($module::$model),)+
            }
        }

        $(pub use $module::$model;)+

        impl Model {
            /// Small classes as a scenario file has them, one for each model, in the order of the
            /// enum.
            pub fn examples() -> Vec<&'static str> {
                [$(<$module::$model as ModelParameters>::example(),)+].to_vec()
            }

            /// Which of them are made for streams, in the order of the enum.
            pub fn for_streams() -> Vec<bool> {
                vec![$(<$module::$model as ModelParameters>::is_for_streams(),)+]
            }

            /// Whether the model is made for streams: connections of QUIC, unless a class names
            /// another transport.
            pub fn is_for_streams(&self) -> bool {
                match self {
                    $(Self::$model(_) => <$module::$model as ModelParameters>::is_for_streams(),)+
                }
            }

            /// The model's parameters.
            pub fn parameters(&self) -> &dyn ModelParameters {
                match self {
                    $(Self::$model(params) => params,)+
                }
            }

            /// The model's parameters, to be changed.
            pub fn parameters_mut(&mut self) -> &mut dyn ModelParameters {
                match self {
                    $(Self::$model(params) => params,)+
                }
            }
        }
    };
}

pub(crate) use models;
